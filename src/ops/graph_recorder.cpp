#include "ops/graph_recorder.h"

#include <mlx/primitives.h>

#include <string_view>

#include "base/error.h"
#include "base/mx_ops.h"

namespace godwit::ops {
namespace {

bool has_value(const mx::array& x) { return x.status() != mx::array::Status::unscheduled; }

// Gives back its first operand: what MLX puts in where shapes may change, and here do not.
bool is_same(const mx::array& x) {
  const std::string_view name = x.primitive().name();
  if (name == "StopGradient") return true;
  return (name == "Broadcast" || name == "BroadcastAxes") && x.shape() == x.inputs()[0].shape();
}

// dtype and bytes of a scalar that can be read.
std::string scalar_key(const mx::array& x) {
  std::string key(1, static_cast<char>(x.dtype().val()));
  return key.append(static_cast<const char*>(x.data<void>()), x.itemsize());
}

}  // namespace

std::span<const mx::array> GraphRecorder::operands_of(const BuiltGraph&, const mx::array& x) const {
  if (inputs_.contains(x.id()) || has_value(x)) return {};
  if (const auto call = call_results_.find(x.id()); call != call_results_.end()) return call_operands_[call->second];
  return x.inputs();
}

GraphRecorder::Arrays GraphRecorder::in_order(const BuiltGraph& built) const {
  Arrays order;
  std::unordered_set<std::uintptr_t> met;
  const auto meet = [&](const mx::array& x) {
    if (!met.insert(x.id()).second) return false;
    for (const mx::array& sibling : x.siblings()) met.insert(sibling.id());
    return true;
  };
  struct Visit {
    mx::array array;
    std::span<const mx::array> operands;
    std::size_t next = 0;
  };
  std::vector<Visit> path;
  const auto walk = [&](const mx::array& root) {
    if (meet(root)) path.push_back({root, operands_of(built, root)});
    while (!path.empty()) {
      Visit& visit = path.back();
      if (visit.next == visit.operands.size()) {
        order.push_back(visit.array);
        path.pop_back();
        continue;
      }
      const mx::array& operand = visit.operands[visit.next++];
      if (meet(operand)) path.push_back({operand, operands_of(built, operand)});
    }
  };
  for (const mx::array& output : built.outputs) walk(output);
  if (!built.calls.empty()) walk(built.calls.back().result);
  return order;
}

// Values, not recipes: what nothing has evaluated yet (a norm's 1 + w in a row that was restored) would else be computed
// at each step.
void GraphRecorder::fold_constants(const BuiltGraph& built) {
  std::unordered_set<std::uintptr_t> depends;
  std::unordered_map<std::uintptr_t, mx::array> used;
  for (const mx::array& x : in_order(built)) {
    const auto operands = operands_of(built, x);
    bool moves = inputs_.contains(x.id()) || call_results_.contains(x.id());
    for (const mx::array& operand : operands) moves = moves || depends.contains(operand.id());
    if (!moves) continue;
    for (const mx::array& each : x.outputs()) depends.insert(each.id());
    for (const mx::array& operand : operands)
      if (!depends.contains(operand.id())) used.try_emplace(operand.id(), operand);
  }
  for (const mx::array& output : built.outputs)
    if (!depends.contains(output.id())) used.try_emplace(output.id(), output);
  Arrays folded;
  for (const auto& [id, x] : used)
    if (!has_value(x) && x.has_primitive() && x.nbytes() <= RecordedGraph::kFolded) folded.push_back(x);
  mx::eval(folded);
}

void GraphRecorder::add_constant(const mx::array& x) {
  if (!has_value(x)) fail(ErrorCode::internal, "graph", "a leaf without a value that is no input");
  if (x.ndim() == 0) {
    mx::array(x).wait();
    const auto [found, is_new] = scalars_.try_emplace(scalar_key(x), graph_.values_);
    if (!is_new) {
      values_.emplace(x.id(), found->second);
      return;
    }
  }
  const std::size_t value = new_value();
  values_.emplace(x.id(), value);
  graph_.constants_.push_back({value, x});
}

std::size_t GraphRecorder::value_of(const mx::array& x) const {
  const auto found = values_.find(x.id());
  GODWIT_CHECK(found != values_.end(), "an operand that was not recorded");
  return found->second;
}

void GraphRecorder::add_call(const BuiltGraph& built, std::size_t index) {
  const GraphCall& call = built.calls[index];
  Entry entry;
  entry.call = index;
  for (const mx::array& operand : call.operands) entry.operands.push_back(value_of(operand));
  entry.results = {new_value()};
  entry.shapes = {call.result.shape()};
  entry.dtypes = {call.result.dtype()};
  values_.emplace(call.result.id(), entry.results[0]);
  graph_.entries_.push_back(std::move(entry));
  ++graph_.calls_;
}

const GraphRecorder::Entry* GraphRecorder::equal_to(const Entry& entry) const {
  const auto alike = nodes_.find({std::type_index(typeid(*entry.primitive)), entry.operands});
  if (alike == nodes_.end()) return nullptr;
  for (const std::size_t index : alike->second) {
    const Entry& other = graph_.entries_[index];
    if (other.shapes == entry.shapes && other.dtypes == entry.dtypes &&
        other.primitive->stream() == entry.primitive->stream() && other.primitive->is_equivalent(*entry.primitive))
      return &other;
  }
  return nullptr;
}

void GraphRecorder::add_node(const mx::array& x) {
  if (is_same(x)) {
    values_.emplace(x.id(), value_of(x.inputs()[0]));
    return;
  }
  Entry entry;
  entry.primitive = x.primitive_ptr();
  for (const mx::array& operand : x.inputs()) entry.operands.push_back(value_of(operand));
  const Arrays results = x.outputs();
  for (const mx::array& result : results) {
    entry.shapes.push_back(result.shape());
    entry.dtypes.push_back(result.dtype());
  }
  if (results.size() == 1) {
    if (const Entry* equal = equal_to(entry)) {
      values_.emplace(x.id(), equal->results[0]);
      return;
    }
    nodes_[{std::type_index(typeid(*entry.primitive)), entry.operands}].push_back(graph_.entries_.size());
  }
  for (const mx::array& result : results) {
    entry.results.push_back(new_value());
    values_.emplace(result.id(), entry.results.back());
  }
  graph_.entries_.push_back(std::move(entry));
}

void GraphRecorder::record(const BuiltGraph& built) {
  for (const mx::array& input : built.inputs) {
    values_.emplace(input.id(), new_value());
    inputs_.insert(input.id());
  }
  for (std::size_t c = 0; c < built.calls.size(); ++c) {
    call_results_.emplace(built.calls[c].result.id(), c);
    call_operands_.push_back(built.calls[c].operands);
    if (c > 0) call_operands_.back().push_back(built.calls[c - 1].result);
  }
  fold_constants(built);
  for (const mx::array& x : in_order(built)) {
    if (inputs_.contains(x.id())) continue;
    if (const auto call = call_results_.find(x.id()); call != call_results_.end())
      add_call(built, call->second);
    else if (has_value(x) || !x.has_primitive())
      add_constant(x);
    else
      add_node(x);
  }
  for (const mx::array& output : built.outputs) graph_.outputs_.push_back(value_of(output));
}

}  // namespace godwit::ops
