#include "kernels/attention.h"

#include "kernels/half.h"

namespace godwit::kernels {
namespace {

template <class T, class Convert>
void store_rows(const StoreKvArgs& a, Convert convert) {
  for (std::int64_t token = 0; token < a.tokens; token++) {
    const std::int64_t block = (a.position + token) / kBlockPositions,
                       slot = (a.position + token) % kBlockPositions;
    for (std::int64_t head = 0; head < a.kv_heads; head++) {
      const float* k = a.k + token * a.k_stride + head * a.head_dim;
      const float* v = a.v + token * a.v_stride + head * a.head_dim;
      T* keys = static_cast<T*>(a.key_blocks[block]) + head * a.head_dim * kBlockPositions + slot;
      T* values = static_cast<T*>(a.value_blocks[block]) + (head * kBlockPositions + slot) * a.head_dim;
      for (std::int64_t d = 0; d < a.head_dim; d++) keys[d * kBlockPositions] = convert(k[d]);
      for (std::int64_t d = 0; d < a.head_dim; d++) values[d] = convert(v[d]);
    }
  }
}

}  // namespace

void store_kv(const StoreKvArgs& args) {
  switch (args.type) {
    case KvType::f32:
      return store_rows<float>(args, [](float x) { return x; });
    case KvType::f16:
      return store_rows<std::uint16_t>(args, float_to_f16);
    case KvType::bf16:
      return store_rows<std::uint16_t>(args, float_to_bf16);
  }
}

}  // namespace godwit::kernels
