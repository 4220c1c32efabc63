// A recurrent layer of the Step's row in `reference` mode. Private to cache.
#pragma once

#include <optional>

#include "cache/recurrent_state.h"
#include "cache/row_impl.h"
#include "cache/step_layer.h"

namespace godwit::cache {

class RecurrentLayer final : public StepLayer {
 public:
  // `state` outlives the layer.
  RecurrentLayer(const RecurrentNeed& need, RecurrentState& state, int tokens)
      : need_(need), state_(state), tokens_(tokens) {}
  RecurrentLayer(const StoreChoices& choices, Row::Impl& row, LayerPlace place, const RowSpan& span);

  // A graph. Error{internal} for other shapes than state.h names and for a second call.
  mx::array recur(const RecurrentInputs& inputs) override;

  bool stored() const override { return fresh_.has_value(); }
  void pending(std::vector<mx::array>& into) const override;
  void publish() noexcept override;
  void abandon() noexcept override { fresh_.reset(); }

 private:
  struct Fresh {
    RecurrentRef memory;
    RecurrentInputs inputs;
  };

  RecurrentNeed need_;
  RecurrentState& state_;
  int tokens_;
  std::optional<Fresh> fresh_;  // once the step's tokens are there
};

}  // namespace godwit::cache
