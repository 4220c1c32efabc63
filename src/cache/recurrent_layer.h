// A recurrent layer over the rows of a Step, each with its own memory. Private to cache.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "cache/recurrent_state.h"
#include "cache/row_impl.h"
#include "cache/step_layer.h"

namespace godwit::cache {

class RecurrentLayer final : public StepLayer {
 public:
  struct Part {
    RecurrentState* state;  // outlives the layer
    int tokens;
  };
  // Parts in plan order; `reference` has one. `runtime` as in gated_delta().
  RecurrentLayer(const RecurrentNeed& need, NumericMode mode, ops::NativeRuntime* runtime,
                 std::vector<Part> parts);
  RecurrentLayer(const StoreChoices& choices, LayerPlace place, std::span<Row::Impl* const> rows,
                 std::span<const RowSpan> spans);

  // `reference`: a graph. `native` evaluates its inputs and computes at once. Error{internal} for other
  // shapes than state.h names and for a second call.
  mx::array recur(const RecurrentInputs& inputs) override;

  bool stored() const override { return !fresh_.empty(); }
  void pending(std::vector<mx::array>& into) const override;
  void publish() noexcept override;
  void abandon() noexcept override { fresh_.clear(); }

 private:
  struct Fresh {
    RecurrentRef memory;
    RecurrentInputs inputs;  // of that row
  };
  std::vector<RecurrentInputs> inputs_by_row(const RecurrentInputs& inputs) const;

  RecurrentNeed need_;
  NumericMode mode_;
  ops::NativeRuntime* runtime_;
  std::vector<Part> parts_;
  int tokens_ = 0;
  std::vector<Fresh> fresh_;  // by part, once the step's tokens are there
};

}  // namespace godwit::cache
