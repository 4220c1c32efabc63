// A layer of the Step's rows in `native` mode: the blocks that its fused primitive writes and reads, and the same
// arithmetic for whoever attends outside one. Private to cache.
#pragma once

#include <span>

#include "cache/row_impl.h"
#include "cache/step_layer.h"
#include "ops/kv_layer.h"

namespace godwit::cache {

class NativeLayer final : public StepLayer {
 public:
  // `kv` is entry `index` of the Step's and outlives the layer.
  NativeLayer(const StoreChoices& choices, int index, ops::KvLayer& kv);
  // For the Steps that follow each other. Room for the tokens of every row has been made. `rows` and `spans` in plan
  // order.
  void begin(std::span<Row::Impl* const> rows, std::span<const RowSpan> spans, bool reads_only);

  // These evaluate their inputs and compute at once, on the calling thread and the runtime's pool.
  mx::array attend(const mx::array& q, const mx::array& k, const mx::array& v, const AttendSpec& spec) override;
  mx::array attend(const mx::array& q, const AttendSpec& spec) override;
  mx::array attend_block(const mx::array& q, const mx::array& k, const mx::array& v,
                         const AttendSpec& spec) override;
  int native_layer() const override { return index_; }

  bool stored() const override { return kv_.reads_only || kv_.stored; }
  void pending(std::vector<mx::array>&) const override {}
  void publish() noexcept override {}
  void abandon() noexcept override {}

 private:
  const StoreChoices& choices_;
  const int index_;
  const LayerGroup& group_;
  const LayerNeed& need_;
  int tokens_ = 0;
  ops::KvLayer& kv_;
};

}  // namespace godwit::cache
