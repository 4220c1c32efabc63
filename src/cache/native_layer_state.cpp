#include "cache/native_layer_state.h"

#include "base/error.h"

namespace godwit::cache {
namespace {

[[noreturn]] void refuse() {
  fail(ErrorCode::internal, "state", "native mode stores and attends inside its attention primitive");
}

}  // namespace

kernels::KvType native_type(const KvPolicy& policy) {
  switch (policy.dense) {
    case DenseType::f16:
      return kernels::KvType::f16;
    case DenseType::bf16:
      return kernels::KvType::bf16;
    case DenseType::model:
    case DenseType::f32:
      break;
  }
  return kernels::KvType::f32;
}

NativeLayerState::NativeLayerState(const LayerNeed& need, const KvPolicy& policy)
    : kv_(std::make_shared<ops::KvLayer>()) {
  kv_->type = native_type(policy);
  kv_->window = need.window == WindowKind::sliding ? need.window_size : 0;
}

void NativeLayerState::add(const BlockTable& table, int position, int tokens) {
  kv_->rows.push_back({table.keys(), table.values(), position, tokens});
}

mx::array NativeLayerState::attend(const mx::array&, const mx::array&, const mx::array&, const AttendSpec&) {
  refuse();
}
mx::array NativeLayerState::attend(const mx::array&, const AttendSpec&) { refuse(); }
mx::array NativeLayerState::attend_block(const mx::array&, const mx::array&, const mx::array&,
                                         const AttendSpec&) {
  refuse();
}

}  // namespace godwit::cache
