// A recurrent layer of the Step's rows in `native` mode: the memories that its fused primitive reads and writes.
// Private to cache.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "cache/recurrent_state.h"
#include "cache/row_impl.h"
#include "cache/step_layer.h"
#include "ops/delta_layer.h"

namespace godwit::cache {

class NativeRecurrent final : public StepLayer {
 public:
  struct Part {
    RecurrentState* state;  // outlives the layer
    int tokens;
  };
  // Room for the memory behind the tokens is made here. Parts, rows and spans in plan order.
  NativeRecurrent(const RecurrentNeed& need, std::span<const Part> parts);
  NativeRecurrent(const StoreChoices& choices, LayerPlace place, std::span<Row::Impl* const> rows,
                  std::span<const RowSpan> spans);

  std::shared_ptr<ops::DeltaLayer> native_recurrent() override { return layer_; }

  bool stored() const override { return layer_->stored; }
  void pending(std::vector<mx::array>&) const override {}
  void publish() noexcept override;
  void abandon() noexcept override { layer_->open = false; }

 private:
  struct Fresh {
    RecurrentState* state;
    RecurrentRef memory;                       // behind the tokens
    std::shared_ptr<ops::DeltaInputs> inputs;  // of a row inside a round
  };

  std::shared_ptr<ops::DeltaLayer> layer_;
  std::vector<Fresh> fresh_;  // by row
};

}  // namespace godwit::cache
