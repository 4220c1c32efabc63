#include "ops/recorded_graph.h"

#include <mlx/primitives.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/mx_ops.h"
#include "ops/graph_recorder.h"

namespace godwit::ops {
namespace {

bool same_shape(const mx::array& a, const mx::array& b) { return a.shape() == b.shape(); }

// Operands that were alike stay alike: else a literal shape hides among those that follow.
void check_alike(const std::string& name, const std::vector<mx::array>& before, const std::vector<mx::array>& after) {
  for (std::size_t i = 1; i < before.size(); ++i)
    if (same_shape(before[0], before[i]) && !same_shape(after[0], after[i]))
      fail(ErrorCode::unsupported, "graph", "{} over a shape that does not follow the others", name);
}

}  // namespace

mx::array placeholder(const mx::Shape& shape, mx::Dtype dtype) { return mx::array(shape, dtype, nullptr, {}); }

RecordedGraph::RecordedGraph(const BuiltGraph& built) {
  for (std::size_t i = 0; i < built.inputs.size(); ++i) {
    const mx::array& input = built.inputs[i];
    inputs_.push_back({input.shape(), input.dtype(), !built.later.empty() && built.later[i]});
  }
  GraphRecorder(*this).record(built);
  if (!built.later.empty()) find_followers(built);
}

std::vector<mx::array> RecordedGraph::results_of(const Entry& entry, std::vector<mx::array> operands,
                                                 const Caller& caller) const {
  if (!entry.primitive) {
    mx::array result = caller(entry.call, operands);
    GODWIT_CHECK(result.shape() == entry.shapes[0] && result.dtype() == entry.dtypes[0],
                 "call {} of a recorded graph gave another shape or dtype", entry.call);
    return {std::move(result)};
  }
  std::vector<mx::Shape> shapes = entry.follows ? entry.primitive->output_shapes(operands) : entry.shapes;
  if (shapes.size() == 1)
    return {mx::array(std::move(shapes[0]), entry.dtypes[0], entry.primitive, std::move(operands))};
  return mx::array::make_arrays(std::move(shapes), entry.dtypes, entry.primitive, operands);
}

void RecordedGraph::check_inputs(std::span<const mx::array> inputs) const {
  GODWIT_CHECK(inputs.size() == inputs_.size(), "{} inputs, the graph has {}", inputs.size(), inputs_.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Input& own = inputs_[i];
    const bool fits = own.changes ? inputs[i].ndim() == own.shape.size() : inputs[i].shape() == own.shape;
    GODWIT_CHECK(fits && inputs[i].dtype() == own.dtype, "input {} of a recorded graph has another shape or dtype", i);
  }
}

std::vector<mx::array> RecordedGraph::replay(std::span<const mx::array> inputs, const Caller& caller) const {
  check_inputs(inputs);
  std::vector<std::optional<mx::array>> values(values_);
  for (std::size_t i = 0; i < inputs.size(); ++i) values[i] = inputs[i];
  for (const Constant& constant : constants_) values[constant.value] = constant.array;
  for (const Entry& entry : entries_) {
    std::vector<mx::array> operands;
    operands.reserve(entry.operands.size());
    for (const std::size_t value : entry.operands) operands.push_back(*values[value]);
    std::vector<mx::array> results = results_of(entry, std::move(operands), caller);
    for (std::size_t r = 0; r < results.size(); ++r) values[entry.results[r]] = std::move(results[r]);
  }
  std::vector<mx::array> outputs;
  for (const std::size_t value : outputs_) outputs.push_back(*values[value]);
  return outputs;
}

// One replay over placeholders of the later shapes, beside one over those of now.
void RecordedGraph::find_followers(const BuiltGraph& built) {
  std::vector<std::optional<mx::array>> before(values_), after(values_);
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    before[i] = placeholder(inputs_[i].shape, inputs_[i].dtype);
    after[i] = placeholder(built.later[i].value_or(inputs_[i].shape), inputs_[i].dtype);
  }
  for (const Constant& constant : constants_) before[constant.value] = after[constant.value] = constant.array;
  for (Entry& entry : entries_) {
    std::vector<mx::array> was, is;
    for (const std::size_t value : entry.operands) {
      was.push_back(*before[value]);
      is.push_back(*after[value]);
    }
    entry.follows = !std::ranges::equal(was, is, same_shape);
    std::vector<mx::Shape> shapes = entry.shapes;
    if (entry.follows) {
      if (!entry.primitive) fail(ErrorCode::unsupported, "graph", "a call over a shape that changes");
      check_alike(entry.primitive->name(), was, is);
      shapes = entry.primitive->output_shapes(is);
    }
    for (std::size_t r = 0; r < entry.results.size(); ++r) {
      before[entry.results[r]] = placeholder(entry.shapes[r], entry.dtypes[r]);
      after[entry.results[r]] = placeholder(shapes[r], entry.dtypes[r]);
    }
  }
}

}  // namespace godwit::ops
