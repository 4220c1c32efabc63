#include "models/compiled_step.h"

#include <fmt/format.h>
#include <mlx/compile.h>

#include <algorithm>
#include <array>
#include <exception>
#include <functional>
#include <utility>

#include "base/error.h"
#include "base/mx_ops.h"
#include "models/layer_calls.h"

namespace godwit::models {
namespace {

// One column more. Components are [1, heads, columns, fields], the order of a ring [columns].
mx::Shape with_one_more(mx::Shape shape) {
  ++shape[shape.size() == 4 ? 2 : 0];
  return shape;
}

bool is_inside(cache::SlotKind kind, bool is_whole) {
  return kind == cache::SlotKind::fixed || (is_whole && kind == cache::SlotKind::growing);
}

// `build` over placeholders of these arrays. Where shapes will change, in MLX's own tracing of such graphs, as far as
// it is there: broadcasts then name what they follow. Nothing of MLX's compilation is used but that.
template <typename Build>
void over_placeholders(const std::vector<mx::array>& arrays, bool change, Build&& build) {
  bool is_done = false;
  if (change) {
    const auto traced = [&](const std::vector<mx::array>& inputs) -> std::vector<mx::array> {
      if (inputs[0].id() == arrays[0].id()) return {inputs[0]};  // MLX runs, rather than traces, what it cannot compile
      build(inputs);
      is_done = true;
      return {inputs[0]};
    };
    mx::compile(std::function<std::vector<mx::array>(const std::vector<mx::array>&)>(traced), /*shapeless=*/true)(arrays);
  }
  if (is_done) return;
  std::vector<mx::array> inputs;
  for (const mx::array& x : arrays) inputs.push_back(ops::placeholder(x.shape(), x.dtype()));
  build(inputs);
}

}  // namespace

CompiledStep::CompiledStep(const Model& graph, Weights weights, bool is_required, Log log)
    : graph_(graph),
      weights_(std::move(weights)),
      is_required_(is_required),
      log_(std::move(log)),
      layers_(static_cast<int>(graph.state_needs().size())) {}

// Weights of other shapes or dtypes make another graph.
std::string CompiledStep::weights_key() const {
  std::vector<mx::array> planes;
  append_weights(planes);
  std::size_t hash = 0;
  const auto mix = [&](std::size_t value) { hash = (hash ^ value) * 0x9e3779b97f4a7c15u + (hash >> 29); };
  for (const mx::array& plane : planes) {
    mix(static_cast<std::size_t>(plane.dtype().val()));
    for (const int size : plane.shape()) mix(static_cast<std::size_t>(size));
  }
  return fmt::format("{:x}", hash);
}

CompiledStep::Recorded& CompiledStep::recorded_for(const cache::Step& step) {
  std::string key = weights_key();
  bool grows = false;
  for (int layer = 0; layer < layers_; ++layer) {
    const cache::StepSlot slot = step.slot(layer);
    key += fmt::format(" {}{}", static_cast<int>(slot.kind), slot.key);
    grows = grows || slot.kind == cache::SlotKind::growing;
  }
  if (recorded_.size() >= kMostGraphs && !recorded_.contains(key)) recorded_.clear();
  const auto [found, is_new] = recorded_.try_emplace(std::move(key));
  if (is_new && !grows) found->second.form = Form::segmented;
  return found->second;
}

void CompiledStep::append_weights(std::vector<mx::array>& inputs) const {
  for (const auto& [path, weight] : weights_) {
    inputs.push_back(weight->data);
    if (weight->scales) inputs.push_back(*weight->scales);
    if (weight->biases) inputs.push_back(*weight->biases);
  }
}

std::vector<mx::array> CompiledStep::state_inputs(const Recorded& recorded, const cache::Step& step,
                                                  const mx::array& token) const {
  std::vector<mx::array> inputs = {token, step.offset(0)};
  for (const int layer : recorded.inside)
    for (mx::array& x : step.slot_inputs(layer)) inputs.push_back(std::move(x));
  return inputs;
}

ops::BuiltGraph CompiledStep::build(Recorded& recorded, cache::Step& step, const std::vector<mx::array>& inputs) const {
  ops::BuiltGraph built{.inputs = inputs, .later = {}, .outputs = {}, .calls = {}};
  built.later.resize(2);
  const cache::StateNeeds needs = graph_.state_needs();
  CallNotes notes;
  std::vector<CallRecorder> stand_ins;
  stand_ins.reserve(needs.size());
  std::size_t next = 2;
  for (int layer = 0; layer < layers_; ++layer) {
    if (!std::ranges::binary_search(recorded.inside, layer)) {
      stand_ins.emplace_back(layer, needs[static_cast<std::size_t>(layer)], notes);
      step.stand_in(layer, stand_ins.back());
      continue;
    }
    const bool grows = step.slot(layer).kind == cache::SlotKind::growing;
    const std::size_t end = next + step.slot_inputs(layer).size();
    step.bind(layer, {inputs.begin() + static_cast<std::ptrdiff_t>(next), inputs.begin() + static_cast<std::ptrdiff_t>(end)});
    for (; next < end; ++next)
      built.later.push_back(grows ? std::optional(with_one_more(inputs[next].shape())) : std::nullopt);
  }
  step.bind_offset(inputs[1]);
  built.outputs = {graph_.logits(graph_.hidden(inputs[0], step))};
  for (const int layer : recorded.inside) {
    const std::vector<mx::array> stored = step.pending(layer);
    recorded.stored.push_back(stored.size());
    built.outputs.insert(built.outputs.end(), stored.begin(), stored.end());
  }
  recorded.calls = std::move(notes.calls);
  built.calls = std::move(notes.arrays);
  return built;
}

void CompiledStep::record(Recorded& recorded, cache::Step& step) {
  ++counts_.traces;
  bool grows = false;
  for (int layer = 0; layer < layers_; ++layer) {
    const cache::SlotKind kind = step.slot(layer).kind;
    if (!is_inside(kind, recorded.form == Form::whole)) continue;
    recorded.inside.push_back(layer);
    grows = grows || kind == cache::SlotKind::growing;
  }
  std::optional<ops::BuiltGraph> built;
  over_placeholders(state_inputs(recorded, step, mx::array({0})), grows,
                    [&](const std::vector<mx::array>& inputs) { built = build(recorded, step, inputs); });
  append_weights(built->inputs);
  if (grows)
    built->later.resize(built->inputs.size());
  else
    built->later.clear();
  recorded.graph.emplace(*built);
  const ops::RecordedGraph& graph = *recorded.graph;
  log_.info("compiled step: recorded {}, {} nodes, {} constants", graph.calls() == 0 ? std::string("a whole graph")
            : fmt::format("a graph around {} calls of layers", graph.calls()), graph.nodes(), graph.constants());
}

void CompiledStep::evaluate(const Recorded& recorded, cache::Step& step, int token, const Outputs& outputs) {
  std::vector<mx::array> inputs = state_inputs(recorded, step, mx::array({token}));
  append_weights(inputs);
  const std::optional<std::size_t> fails_at = std::exchange(fails_at_, std::nullopt);
  const auto caller = [&](std::size_t call, const std::vector<mx::array>& operands) {
    if (call == fails_at) fail(ErrorCode::internal, "compiled step", "told to fail at call {}", call);
    return make_call(recorded.calls[call], step, operands);
  };
  const std::vector<mx::array> replayed = recorded.graph->replay(inputs, caller);
  auto next = replayed.begin() + 1;
  for (std::size_t i = 0; i < recorded.inside.size(); ++i) {
    const auto count = static_cast<std::ptrdiff_t>(recorded.stored[i]);
    step.accept(recorded.inside[i], {next, next + count});
    next += count;
  }
  if (fails_at && *fails_at >= recorded.calls.size()) fail(ErrorCode::internal, "compiled step", "told to fail");
  std::vector<mx::array> wanted = outputs(replayed[0]);
  for (mx::array& pending : step.pending()) wanted.push_back(std::move(pending));
  mx::eval(wanted);
}

void CompiledStep::give_up(Recorded& recorded, const char* reason) {
  ++counts_.failures;
  const bool was_whole = recorded.form == Form::whole;
  log_.info("compiled step: {} was given up: {}", was_whole ? "a whole graph, now segmented," : "a graph", reason);
  recorded = {.form = was_whole ? Form::segmented : Form::none, .graph = {}, .inside = {}, .stored = {}, .calls = {}};
  if (recorded.form == Form::none && is_required_)
    fail(ErrorCode::unsupported, "compiled step", "a compiled step is required, and this one cannot be: {}", reason);
}

bool CompiledStep::run(const cache::StateStore& store, cache::Row& row, int token, const Outputs& outputs) {
  if (row.position() == 0) return false;
  const std::array<cache::RowSpan, 1> spans = {cache::RowSpan{&row, 1}};
  std::optional<cache::Step> step(store.plan(spans));
  const auto plan_again = [&] {  // nothing of the step before has reached the row
    step.reset();
    step.emplace(store.plan(spans));
  };
  Recorded& recorded = recorded_for(*step);
  while (recorded.form != Form::none) {
    try {
      if (!recorded.graph) {
        record(recorded, *step);
        plan_again();
      }
      evaluate(recorded, *step, token, outputs);
      break;
    } catch (const std::exception& error) {
      give_up(recorded, error.what());
      plan_again();
    }
  }
  if (recorded.form == Form::none) return false;
  step->publish();
  ++counts_.steps;
  counts_.nodes = recorded.graph->nodes();
  counts_.calls = recorded.graph->calls();
  counts_.constants = recorded.graph->constants();
  return true;
}

}  // namespace godwit::models
