// A cross layer over the rows of a Step: keys and values that are written once for a row, then only read.
// Private to cache.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "cache/cross_memory.h"
#include "cache/native_layout.h"
#include "cache/row_impl.h"
#include "cache/step_layer.h"

namespace godwit::cache {

class CrossLayer final : public StepLayer {
 public:
  using StepLayer::attend;
  struct Part {
    CrossMemory* memory;  // outlives the layer
    int tokens;
  };
  // What `native` writes and attends with; `reference` needs neither.
  struct Native {
    std::shared_ptr<BlockPool> pool;
    ops::NativeRuntime* runtime = nullptr;
  };
  // Parts in plan order; `reference` has one.
  CrossLayer(const LayerNeed& need, NumericMode mode, Native native, std::vector<Part> parts);
  CrossLayer(const StoreChoices& choices, LayerPlace place, std::span<Row::Impl* const> rows,
             std::span<const RowSpan> spans);

  // k [positions, kv_heads, key_dim], v [positions, kv_heads, value_dim] for the only row of the Step, which
  // keeps them when the Step is published. Error{internal} for a row that has some already.
  void write(const mx::array& k, const mx::array& v) override;
  // Every query sees all positions of its row. Error{internal} for a row without any.
  mx::array attend(const mx::array& q, const AttendSpec& spec) override;

  bool stored() const override;  // every row has its keys and values
  void pending(std::vector<mx::array>& into) const override;
  void publish() noexcept override;
  void abandon() noexcept override { fresh_.reset(); }

 private:
  CrossMemory written(const mx::array& k, const mx::array& v) const;
  CrossMemory written_native(const mx::array& k, const mx::array& v) const;
  mx::array attend_native(const mx::array& q, const AttendSpec& spec) const;
  const CrossMemory& memory(const Part& part) const { return fresh_ ? fresh_ : *part.memory; }
  ops::NativeRuntime& runtime() const;

  LayerNeed need_;
  NumericMode mode_;
  Native native_;
  NativeLayout layout_;  // of a block that holds this layer alone
  std::vector<Part> parts_;
  int tokens_ = 0;
  CrossMemory fresh_;  // written in this Step
};

}  // namespace godwit::cache
