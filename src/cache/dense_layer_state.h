// A layer of one row during a Step, in the dense codec and `reference` order. Private to cache.
#pragma once

#include <optional>

#include "cache/dense_attention.h"
#include "cache/row_impl.h"
#include "cache/step_layer.h"

namespace godwit::cache {

class DenseLayerState final : public StepLayer {
 public:
  // `position` is the row's length at plan time. The memory must outlive this object.
  DenseLayerState(LayerMemory& memory, const LayerNeed& need, const KvPolicy& policy, int position,
                  int tokens);

  mx::array attend(const mx::array& q, const mx::array& k, const mx::array& v,
                   const AttendSpec& spec) override;
  mx::array attend(const mx::array& q, const AttendSpec& spec) override;
  mx::array attend_block(const mx::array& q, const mx::array& k, const mx::array& v,
                         const AttendSpec& spec) override;
  std::shared_ptr<ops::KvLayer> native() override;

  bool stored() const override { return stored_; }
  bool evaluated() const override { return memory_.planes.evaluated(); }
  void publish() noexcept override;
  void abandon() override;

 private:
  struct Columns {
    mx::array keys;
    mx::array values;
    int count;
  };
  Columns visible(mx::Dtype dtype) const;
  Columns context(mx::Dtype dtype) const;
  int window() const { return need_.window == WindowKind::sliding ? need_.window_size : 0; }
  int end() const { return position_ + tokens_; }

  LayerMemory& memory_;
  const LayerNeed& need_;
  KvPolicy policy_;
  int position_;
  int tokens_;
  std::optional<RingShadow> ring_after_;
  bool stored_ = false;
};

}  // namespace godwit::cache
