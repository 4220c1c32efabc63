// Rotary position embedding, half-split: element i of a head is paired with i + dims/2; elements past `dims`
// stay.
#pragma once

#include <cstdint>

namespace godwit::kernels {

// Angles of a step's tokens, shared by all layers: cosine and sine of position * inverse_frequency, computed
// in double by a polynomial of ours (absolute error below 1e-15 for angles below 2^24) and rounded once to
// f32.
struct RopeTableArgs {
  const std::int32_t* positions;      // [tokens]
  const double* inverse_frequencies;  // [half], radians per position; 0 gives the identity
  float* cosines;                     // [tokens, half]
  float* sines;                       // [tokens, half]
  std::int64_t tokens, half;
};
void rope_table(const RopeTableArgs& args);

struct RopeArgs {
  float* x;              // [tokens, heads, head_dim], rotated in place; tokens lie token_stride apart
  const float* cosines;  // [tokens, dims / 2]
  const float* sines;    // [tokens, dims / 2]
  std::int64_t tokens, heads, head_dim, dims;  // dims even, at most head_dim
  std::int64_t token_stride;                   // in elements
};

}  // namespace godwit::kernels
