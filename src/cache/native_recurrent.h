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
  // Room for the memory behind the tokens is made here. `layer` is entry `index` of the Step's and outlives this. Parts,
  // rows and spans in plan order.
  NativeRecurrent(const RecurrentNeed& need, int index, ops::DeltaLayer& layer, std::span<const Part> parts);
  NativeRecurrent(const StoreChoices& choices, int index, ops::DeltaLayer& layer, std::span<Row::Impl* const> rows,
                  std::span<const RowSpan> spans);
  ~NativeRecurrent() override;

  int native_layer() const override { return index_; }

  bool stored() const override { return layer_.stored; }
  void pending(std::vector<mx::array>&) const override {}
  void publish() noexcept override;
  void abandon() noexcept override { layer_.rows.clear(); }

 private:
  struct Fresh {
    RecurrentState* state;
    RecurrentRef memory;                       // behind the tokens
    std::shared_ptr<ops::DeltaInputs> inputs;  // of a row inside a round
  };

  const int index_;
  ops::DeltaLayer& layer_;  // without rows once the step is over
  std::vector<Fresh> fresh_;  // by row
};

}  // namespace godwit::cache
