#include "cache/recurrent_layer.h"

#include <memory>
#include <utility>

#include "base/error.h"
#include "base/mx_ops.h"
#include "cache/gated_delta.h"

namespace godwit::cache {

RecurrentLayer::RecurrentLayer(const StoreChoices& choices, Row::Impl& row, LayerPlace place, const RowSpan& span)
    : RecurrentLayer(choices.needs()[static_cast<std::size_t>(choices.recurrent[place.index])].recurrent,
                     row.recurrent[place.index], span.tokens) {}

mx::array RecurrentLayer::recur(const RecurrentInputs& inputs) {
  GODWIT_CHECK(!stored(), "a recurrent layer moved twice in one Step");
  check_recurrent(need_, inputs, tokens_);
  // What is kept must not hold, or hang on, the arrays of other steps.
  RecurrentInputs own = inputs;
  if (state_.in_round())
    for (mx::array* x : {&own.mixed, &own.decay, &own.update}) *x = mx::contiguous(*x);
  GatedDeltaResult result = gated_delta(need_, state_.memory(), own);
  state_.make_room();
  fresh_ = Fresh{std::make_shared<const RecurrentMemory>(
                     RecurrentMemory{std::move(result.state), std::move(result.tail)}),
                 std::move(own)};
  return result.out;
}

void RecurrentLayer::pending(std::vector<mx::array>& into) const {
  if (!fresh_) return;
  into.insert(into.end(), {fresh_->memory->state, fresh_->memory->tail});
  const RecurrentInputs& in = fresh_->inputs;
  if (state_.in_round())
    into.insert(into.end(), {in.mixed, in.conv_weight, in.decay, in.update, in.a_log, in.dt_bias});
}

void RecurrentLayer::publish() noexcept {
  if (fresh_) state_.advance(std::move(fresh_->memory), std::move(fresh_->inputs));
  fresh_.reset();
}

}  // namespace godwit::cache
