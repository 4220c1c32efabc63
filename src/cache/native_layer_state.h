// A layer of the step's rows in `native` mode: the tables that its fused primitive writes and reads. Private
// to cache.
#pragma once

#include <memory>

#include "cache/row_impl.h"
#include "cache/step_layer.h"
#include "ops/kv_layer.h"

namespace godwit::cache {

class NativeLayerState final : public StepLayer {
 public:
  NativeLayerState(const LayerNeed& need, const KvPolicy& policy);
  // A row of this Step, in plan order; room for its tokens has been made.
  void add(const BlockTable& table, int position, int tokens);

  mx::array attend(const mx::array& q, const mx::array& k, const mx::array& v,
                   const AttendSpec& spec) override;
  mx::array attend(const mx::array& q, const AttendSpec& spec) override;
  mx::array attend_block(const mx::array& q, const mx::array& k, const mx::array& v,
                         const AttendSpec& spec) override;
  std::shared_ptr<ops::KvLayer> native() override { return kv_; }

  bool stored() const override { return kv_->stored; }
  bool evaluated() const override { return kv_->stored; }
  void publish() noexcept override { kv_->open = false; }
  void abandon() override { kv_->open = false; }

 private:
  std::shared_ptr<ops::KvLayer> kv_;
};

}  // namespace godwit::cache
