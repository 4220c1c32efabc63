// Writing keys and values into their blocks. Everything is f32 unless it says otherwise, in the order
// written, each operation rounded once; round() is half to even, comparisons with NaN are false, half(x) is x
// as f16 kept finite: rounded to nearest even, beyond +-65504 that, NaN 0. One body for all levels.
//
// A record is the head's codes, then for each group its parameters, all little-endian. Codes are a bit
// stream: element i is bits [i b, (i + 1) b), lowest first. With lo and hi the smallest and largest element
// of a group:
//
//   affine (parameters scale, bias; m = 2^b - 1). s = max((hi - lo) / m, 1e-7). edge is lo where |lo| > |hi|,
//   else hi,
//     and then s = -s. n = round(edge / s); where n != 0, s = edge / n and bias = edge, else bias = 0.
//     scale = half(s), bias = half(bias), code = round((x - bias) / scale) in [0, m].    Decoded: code *
//     scale + bias.
//   turbo_keys, 8 bits (scale, middle). middle = half((hi + lo) / 2); scale = up(max(hi - middle, middle -
//   lo) / 127);
//     code = round((x - middle) / scale) in [-127, 127], signed.                         Decoded: code *
//     scale + middle.
//   turbo_keys, below 8 bits (scale, low; m as above). low = down(lo); scale = up((hi - low) / m);
//     code = round((x - low) / scale) in [0, m].                                         Decoded: code *
//     scale + low. up(x) is the smallest f16 in [2^-24, 65504] that is not below x, down(x) the largest
//     finite f16 that is not above: no element lies outside the grid, so none is off by more than half a
//     step, and a scale is never 0.
//   turbo_keys with `parity`, the published format (scale, zero), e = 1e-8:
//     8 bits: s = (hi - lo) / 254, z = round((hi + lo) / (2 (s + e))), code = round(x / (s + e) - z) in
//     [-127, 127]; below:  s = (hi - lo) / m,   z = round(lo / (s + e)),            code = round(x / (s + e)
//     - z) in [0, m]. scale and zero are s and z as plain f16: a constant group overflows. Decoded: (code +
//     zero) * scale.
//   turbo_values (one parameter, scale): y = rotation of the head (rotate_values). r = sqrt(mean of y^2) over
//   the group,
//     summed ascending in f64, rounded to f32; u = y / (r + 1e-8); code = number of boundaries below u; scale
//     = half(r). Decoded: levels[code] * scale, which is y; restore_values gives x.
#pragma once

#include <cstdint>

#include "kernels/kv_plane.h"

namespace godwit::kernels {

// Stores the keys and values of consecutive positions. Dense halves are rounded to nearest even.
struct StoreKvArgs {
  const float* k;       // [tokens, keys.heads, keys.dim], tokens lie k_stride apart
  const float* v;       // [tokens, values.heads, values.dim], v_stride; not read with keys_as_values
  void* const* blocks;  // entry b is the block of positions [64b, 64b + 64)
  KvPlane keys, values;
  std::int64_t position;  // of the first token
  std::int64_t tokens;
  std::int64_t k_stride, v_stride;  // in elements
};
void store_kv(const StoreKvArgs& args);

// Turns slots [0, slots) of a block from dense planes to others: the bytes of storing the dense values
// themselves.
struct ReEncodeKvArgs {
  const void* from;
  KvPlane from_keys, from_values;
  void* to;  // not the same memory
  KvPlane to_keys, to_values;
  std::int64_t slots;
};
void re_encode_kv(const ReEncodeKvArgs& args);

// y = H (signs * x) / sqrt(dim), in place over `dim` elements (64, 128, 256 or 512); H is Sylvester's
// Hadamard matrix: stages of a + b, a - b at distance 1, 2, 4, ..., then a product with f32(1 / sqrt(dim)).
// Its inverse is restore_values in the kernel table.
void rotate_values(float* x, std::int64_t dim);

}  // namespace godwit::kernels
