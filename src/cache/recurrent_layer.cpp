#include "cache/recurrent_layer.h"

#include <memory>
#include <utility>

#include "base/error.h"
#include "base/mx_ops.h"
#include "cache/gated_delta.h"

namespace godwit::cache {
namespace {

std::vector<RecurrentLayer::Part> parts_of(std::size_t index, std::span<Row::Impl* const> rows,
                                           std::span<const RowSpan> spans) {
  std::vector<RecurrentLayer::Part> parts;
  for (std::size_t r = 0; r < rows.size(); ++r)
    parts.push_back({&rows[r]->recurrent[index], spans[r].tokens});
  return parts;
}

void append_inputs(const RecurrentInputs& inputs, std::vector<mx::array>& into) {
  into.insert(into.end(),
              {inputs.mixed, inputs.conv_weight, inputs.decay, inputs.update, inputs.a_log, inputs.dt_bias});
}

}  // namespace

RecurrentLayer::RecurrentLayer(const RecurrentNeed& need, NumericMode mode, ops::NativeRuntime* runtime,
                               std::vector<Part> parts)
    : need_(need), mode_(mode), runtime_(runtime), parts_(std::move(parts)) {
  for (const Part& part : parts_) tokens_ += part.tokens;
  GODWIT_CHECK(mode_ == NumericMode::native || parts_.size() == 1, "{} rows in a reference Step",
               parts_.size());
}

RecurrentLayer::RecurrentLayer(const StoreChoices& choices, LayerPlace place,
                               std::span<Row::Impl* const> rows, std::span<const RowSpan> spans)
    : RecurrentLayer(choices.needs()[static_cast<std::size_t>(choices.recurrent[place.index])].recurrent,
                     choices.signature.mode, choices.runtime, parts_of(place.index, rows, spans)) {}

// A row that may go back keeps its inputs: those must not hold, or hang on, the arrays of other rows and
// steps.
std::vector<RecurrentInputs> RecurrentLayer::inputs_by_row(const RecurrentInputs& inputs) const {
  std::vector<RecurrentInputs> by_row;
  int begin = 0;
  for (const Part& part : parts_) {
    RecurrentInputs own = slice_tokens(inputs, begin, begin + part.tokens);
    if (part.state->in_round() || mode_ == NumericMode::native)
      for (mx::array* x : {&own.mixed, &own.decay, &own.update}) *x = mx::contiguous(*x);
    by_row.push_back(std::move(own));
    begin += part.tokens;
  }
  return by_row;
}

mx::array RecurrentLayer::recur(const RecurrentInputs& inputs) {
  GODWIT_CHECK(!stored(), "a recurrent layer moved twice in one Step");
  check_recurrent(need_, inputs, tokens_);
  std::vector<RecurrentInputs> by_row = inputs_by_row(inputs);
  if (mode_ == NumericMode::native) {  // one evaluation for all rows
    std::vector<mx::array> arrays;
    for (const RecurrentInputs& own : by_row) append_inputs(own, arrays);
    mx::eval(arrays);
  }
  std::vector<mx::array> outs;
  std::vector<Fresh> fresh;
  for (std::size_t r = 0; r < parts_.size(); ++r) {
    GatedDeltaResult result = gated_delta(need_, parts_[r].state->memory(), by_row[r], mode_, runtime_);
    outs.push_back(std::move(result.out));
    fresh.push_back({std::make_shared<const RecurrentMemory>(
                         RecurrentMemory{std::move(result.state), std::move(result.tail)}),
                     std::move(by_row[r])});
    parts_[r].state->make_room();
  }
  fresh_ = std::move(fresh);
  return outs.size() == 1 ? outs[0] : mx::concatenate(std::move(outs), 0);
}

void RecurrentLayer::pending(std::vector<mx::array>& into) const {
  for (std::size_t r = 0; r < fresh_.size(); ++r) {
    into.push_back(fresh_[r].memory->state);
    into.push_back(fresh_[r].memory->tail);
    if (parts_[r].state->in_round()) append_inputs(fresh_[r].inputs, into);
  }
}

void RecurrentLayer::publish() noexcept {
  for (std::size_t r = 0; r < fresh_.size(); ++r)
    parts_[r].state->advance(std::move(fresh_[r].memory), fresh_[r].inputs);
  fresh_.clear();
}

}  // namespace godwit::cache
