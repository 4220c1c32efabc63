// What one test of the state store runs over: layers, codec, start, mode; and the vectors of their tokens.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cache/state.h"

namespace godwit::cache::state_test {

constexpr int kHeads = 4, kKvHeads = 2;

// A codec as parse_kv_policy reads it, over a window (0: full).
struct Pair {
  std::string codec;
  int window = 0;
};

// Every codec that exists over every window that it can serve.
std::vector<Pair> dense_pairs();
std::vector<Pair> affine_pairs();
std::vector<Pair> turbo_pairs();

enum class Layers {
  one,
  with_full,      // a second layer that attends to everything
  with_twin,      // a second layer of equal needs: both share a table
  shared_planes,  // a second layer whose values are its keys (turbo: another full one)
  with_dense,  // the codec is named for the first layer only, as a kv_config.json does; the second is dense
  with_latent,  // a dense layer of latents behind it
  with_recurrent,  // a gated delta layer behind it
};
constexpr int kLayerKinds = 7;

struct Setup {
  NumericMode mode = NumericMode::native;
  StateNeeds needs;
  KvPolicy policy;
  float soft_cap = 0;
  bool has_sinks = false;

  bool is_encodable(int layer) const { return policy.codec_of(layer).kind != CodecKind::dense; }
  bool is_encodable() const;
  bool has_recurrent() const;
  int longest_window() const;  // 0: no layer slides
  AttendSpec spec(int layer) const;
  std::string to_string() const;
};

Setup make_setup(NumericMode mode, const Pair& pair, Layers layers, int start);

enum class Plane { queries, keys, values };

// `dim` elements of every head of the token at `position`: near normal, a pure function of all arguments. The
// values of one token in thirteen are zeros.
void fill_token(float* out, int count, int token, int position, int layer, Plane plane);
// Tokens [begin, begin + count) of a list, as [count, heads, dim]. Of latents, `keys` are the latents and
// `values` their rotary keys.
mx::array packed(const Setup& setup, std::span<const int> tokens, int begin, int count, int layer,
                 Plane plane);
RecurrentInputs recurrent_inputs(const Setup& setup, std::span<const int> tokens, int begin, int count,
                                 int layer);
// Moves a recurrent layer over its span, as its mode does it: [tokens, value_heads, value_dim].
mx::array recurred(const Setup& setup, ops::NativeRuntime& runtime, Step& step, int layer, const RecurrentInputs& inputs);

}  // namespace godwit::cache::state_test
