#include "cache/native_layout.h"

namespace godwit::cache {
namespace {

using kernels::KvForm;
using kernels::KvPlane;

constexpr std::int64_t kLine = 64;  // planes start on cache lines

KvForm dense_form(DenseType dense) {
  switch (dense) {
    case DenseType::f16:
      return KvForm::f16;
    case DenseType::bf16:
      return KvForm::bf16;
    case DenseType::model:
    case DenseType::f32:
      break;
  }
  return KvForm::f32;
}

NativePlanes planes_of(const LayerNeed& need, const Codec& codec, DenseType dense) {
  KvPlane keys{.heads = need.kv_heads, .dim = need.query_dim()};
  KvPlane values{.heads = need.kv_heads, .dim = need.output_dim()};
  switch (codec.kind) {
    case CodecKind::dense:
      keys.form = values.form = dense_form(dense);
      break;
    case CodecKind::affine:
      keys.form = values.form = KvForm::affine;
      keys.bits = values.bits = codec.bits;
      keys.group = values.group = codec.group;
      break;
    case CodecKind::turbo:
      keys.form = KvForm::turbo_keys;
      values.form = KvForm::turbo_values;
      keys.bits = codec.key_bits;
      values.bits = codec.value_bits;
      keys.group = values.group = 32;
      keys.parity = codec.parity;
      break;
  }
  return {keys, values};
}

}  // namespace

NativeLayout native_layout(const LayerNeed& need, const Codec& codec, DenseType dense, std::size_t slots) {
  NativeLayout layout;
  std::int64_t at = 0;
  const auto place = [&](KvPlane& plane) {
    plane.offset = at;
    at += (kernels::plane_bytes(plane) + kLine - 1) / kLine * kLine;
  };
  for (std::size_t slot = 0; slot < slots; ++slot) {
    NativePlanes planes = planes_of(need, codec, dense);
    place(planes.keys);
    if (need.content == Content::keys_as_values || need.content == Content::latent)
      planes.values.offset = planes.keys.offset;
    else
      place(planes.values);
    layout.slots.push_back(planes);
  }
  layout.bytes = static_cast<std::size_t>(at);
  return layout;
}

}  // namespace godwit::cache
