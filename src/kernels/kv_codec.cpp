#include "kernels/kv_codec.h"

#include "kernels/attention.h"
#include "kernels/half.h"
#include "kernels/kv_encode.h"
#include "kernels/turbo_tables.h"

namespace godwit::kernels {
namespace {

// One head of a plane in a block. Slot s has its elements `step` apart.
struct Lane {
  unsigned char* start;
  std::int64_t step;
};
Lane lane_of(const KvPlane& plane, void* block, std::int64_t head, std::int64_t slot, bool is_keys) {
  unsigned char* bytes = static_cast<unsigned char*>(block) + plane.offset;
  const std::int64_t size = plane.form == KvForm::f32 ? 4 : 2;
  if (plane.form > KvForm::bf16) return {bytes + (head * kBlockPositions + slot) * record_bytes(plane), 0};
  if (is_keys) return {bytes + (head * plane.dim * kBlockPositions + slot) * size, kBlockPositions};
  return {bytes + (head * kBlockPositions + slot) * plane.dim * size, 1};
}

template <class T, class Convert>
void write_dense(const Lane& lane, std::int64_t dim, const float* x, Convert convert) {
  T* to = reinterpret_cast<T*>(lane.start);
  for (std::int64_t d = 0; d < dim; d++) to[d * lane.step] = convert(x[d]);
}

template <class T, class Convert>
void read_dense(const Lane& lane, std::int64_t dim, float* x, Convert convert) {
  const T* from = reinterpret_cast<const T*>(lane.start);
  for (std::int64_t d = 0; d < dim; d++) x[d] = convert(from[d * lane.step]);
}

void write_slot(const KvPlane& plane, void* block, std::int64_t head, std::int64_t slot, bool is_keys,
                const float* x) {
  const Lane lane = lane_of(plane, block, head, slot, is_keys);
  switch (plane.form) {
    case KvForm::f32:
      return write_dense<float>(lane, plane.dim, x, [](float value) { return value; });
    case KvForm::f16:
      return write_dense<std::uint16_t>(lane, plane.dim, x, float_to_f16);
    case KvForm::bf16:
      return write_dense<std::uint16_t>(lane, plane.dim, x, float_to_bf16);
    default:
      return encode_record(plane, x, lane.start);
  }
}

void read_slot(const KvPlane& plane, const void* block, std::int64_t head, std::int64_t slot, bool is_keys,
               float* x) {
  const Lane lane = lane_of(plane, const_cast<void*>(block), head, slot, is_keys);
  if (plane.form == KvForm::f32)
    return read_dense<float>(lane, plane.dim, x, [](float value) { return value; });
  if (plane.form == KvForm::f16) return read_dense<std::uint16_t>(lane, plane.dim, x, half_to_float);
  return read_dense<std::uint16_t>(lane, plane.dim, x, bf16_to_float);
}

void re_encode_plane(const ReEncodeKvArgs& a, const KvPlane& from, const KvPlane& to, bool is_keys) {
  float x[kMaxHeadDim];
  for (std::int64_t head = 0; head < from.heads; head++)
    for (std::int64_t slot = 0; slot < a.slots; slot++) {
      read_slot(from, a.from, head, slot, is_keys, x);
      write_slot(to, a.to, head, slot, is_keys, x);
    }
}

}  // namespace

void store_kv(const StoreKvArgs& a) {
  const bool has_values = !keys_as_values(a.keys, a.values);
  for (std::int64_t token = 0; token < a.tokens; token++) {
    const std::int64_t position = a.position + token, slot = position % kBlockPositions;
    void* const block = a.blocks[position / kBlockPositions];
    const float* k = a.k + token * a.k_stride;
    for (std::int64_t head = 0; head < a.keys.heads; head++)
      write_slot(a.keys, block, head, slot, true, k + head * a.keys.dim);
    if (!has_values) continue;
    const float* v = a.v + token * a.v_stride;
    for (std::int64_t head = 0; head < a.values.heads; head++)
      write_slot(a.values, block, head, slot, false, v + head * a.values.dim);
  }
}

void re_encode_kv(const ReEncodeKvArgs& a) {
  re_encode_plane(a, a.from_keys, a.to_keys, true);
  if (!keys_as_values(a.from_keys, a.from_values)) re_encode_plane(a, a.from_values, a.to_values, false);
}

void rotate_values(float* x, std::int64_t dim) {
  const std::uint64_t* signs = turbo_signs(dim);
  for (std::int64_t i = 0; i < dim; i++)
    if (signs[i / 64] >> (i % 64) & 1) x[i] = -x[i];
  for (std::int64_t distance = 1; distance < dim; distance *= 2)
    for (std::int64_t i = 0; i < dim; i += 2 * distance)
      for (std::int64_t j = i; j < i + distance; j++) {
        const float a = x[j], b = x[j + distance];
        x[j] = a + b;
        x[j + distance] = a - b;
      }
  const float factor = turbo_factor(dim);
  for (std::int64_t i = 0; i < dim; i++) x[i] *= factor;
}

}  // namespace godwit::kernels
