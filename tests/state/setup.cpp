#include "state/setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/mx_ops.h"
#include "support/native_recur.h"

namespace godwit::cache::state_test {
namespace {

constexpr int kWindows[] = {0, 8, 40, 100};

std::uint64_t mixed(std::uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// The sum of four uniform numbers, scaled to variance 1.
float near_normal(std::uint64_t bits) {
  std::uint64_t sum = 0;
  for (int i = 0; i < 4; ++i) sum += (bits >> (16 * i)) & 0xffff;
  return (static_cast<float>(sum) - 2 * 65535.0f) / (65536.0f * 0.57735f);
}

std::vector<Pair> over_windows(const std::vector<std::string>& codecs) {
  std::vector<Pair> pairs;
  for (const std::string& codec : codecs)
    for (const int window : kWindows) pairs.push_back({codec, window});
  return pairs;
}

LayerNeed attention_need(int dim, int window) {
  LayerNeed need{.kv_heads = kKvHeads, .key_dim = dim, .value_dim = dim};
  need.window = window > 0 ? WindowKind::sliding : WindowKind::full;
  need.window_size = window;
  return need;
}

LayerNeed shared_planes(const LayerNeed& like) {
  LayerNeed need = like;
  need.content = Content::keys_as_values;
  return need;
}

LayerNeed latent_need() {
  return {.content = Content::latent, .kv_heads = 1, .key_dim = 32, .value_dim = 16};
}

LayerNeed recurrent_need() {
  return {.content = Content::recurrent,
          .recurrent = {
              .key_heads = 1, .value_heads = 2, .key_dim = 16, .value_dim = 16, .channels = 64, .kernel = 4}};
}

mx::array filled(const mx::Shape& shape, std::span<const int> tokens, int begin, int layer, Plane plane,
                 float scale) {
  const int each = static_cast<int>(mx::zeros(shape).size()) / shape[0];
  std::vector<float> values(static_cast<std::size_t>(each) * static_cast<std::size_t>(shape[0]));
  for (int i = 0; i < shape[0]; ++i) {
    const int position = begin + i;
    fill_token(values.data() + i * each, each, tokens[static_cast<std::size_t>(position)], position, layer,
               plane);
  }
  for (float& value : values) value *= scale;
  return mx::array(values.data(), shape);
}

}  // namespace

std::vector<Pair> dense_pairs() { return over_windows({"dense:f32", "dense:f16", "dense:bf16"}); }

std::vector<Pair> affine_pairs() {
  std::vector<std::string> codecs;
  for (const int bits : {2, 3, 4, 5, 6, 8})
    for (const int group : {32, 64, 128}) codecs.push_back(fmt::format("affine:{}:{}", bits, group));
  return over_windows(codecs);
}

std::vector<Pair> turbo_pairs() {
  std::vector<Pair> pairs;
  for (const int keys : {2, 4, 5, 8})
    for (const int values : {2, 3, 4, 5, 8}) pairs.push_back({fmt::format("turbo:{}:{}", keys, values)});
  pairs.push_back({"turbo:8:3:parity"});
  pairs.push_back({"turbo:4:4:parity"});
  return pairs;
}

bool Setup::is_encodable() const {
  for (int layer = 0; layer < static_cast<int>(needs.size()); ++layer)
    if (needs[static_cast<std::size_t>(layer)].has_tokens() && is_encodable(layer)) return true;
  return false;
}

bool Setup::has_recurrent() const {
  return std::ranges::any_of(needs, [](const LayerNeed& need) { return need.content == Content::recurrent; });
}

int Setup::longest_window() const {
  int longest = 0;
  for (const LayerNeed& need : needs) longest = std::max(longest, need.window_size);
  return longest;
}

AttendSpec Setup::spec(int layer) const {
  const int dim = needs[static_cast<std::size_t>(layer)].query_dim();
  AttendSpec spec;
  spec.scale = 1.0f / std::sqrt(static_cast<float>(dim));
  spec.soft_cap = soft_cap;
  if (has_sinks) spec.sinks = mx::array({0.5f, -1.0f, 2.0f, 0.0f});
  return spec;
}

std::string Setup::to_string() const {
  return KvSignature{.mode = mode, .policy = policy, .needs = needs}.to_string() +
         fmt::format(" cap {} sinks {}", soft_cap, has_sinks);
}

Setup make_setup(NumericMode mode, const Pair& pair, Layers layers, int start) {
  Setup setup{.mode = mode, .needs = {}, .policy = parse_kv_policy(pair.codec)};
  setup.policy.start = start;
  const Codec codec = setup.policy.codec;
  // The smallest head that the codec's groups divide.
  const int dim = codec.kind == CodecKind::dense ? 16 : codec.kind == CodecKind::affine ? codec.group : 64;
  const LayerNeed first = attention_need(dim, pair.window);
  setup.needs = {first};
  const bool is_turbo = codec.kind == CodecKind::turbo;
  if (layers == Layers::with_full) setup.needs.push_back(attention_need(is_turbo ? 128 : dim, 0));
  if (layers == Layers::with_twin) setup.needs.push_back(first);
  if (layers == Layers::shared_planes) setup.needs.push_back(is_turbo ? first : shared_planes(first));
  if (layers == Layers::with_recurrent) setup.needs.push_back(recurrent_need());
  if (layers == Layers::with_dense || layers == Layers::with_latent) {
    const bool is_latent = layers == Layers::with_latent;
    setup.needs.push_back(is_latent ? latent_need() : attention_need(32, pair.window));
    // mlx-optiq's arithmetic, which is what "config" stands for, is affine.
    setup.policy.per_layer = codec.kind == CodecKind::affine;
    setup.policy.layers = {{0, codec}};
    setup.policy.codec = {};
  }
  return setup;
}

void fill_token(float* out, int count, int token, int position, int layer, Plane plane) {
  if (plane == Plane::values && token % 13 == 12) {
    std::fill_n(out, count, 0.0f);
    return;
  }
  std::uint64_t state = mixed(
      mixed(static_cast<std::uint64_t>(token + 1000) * 100000 + static_cast<std::uint64_t>(position)) * 8 +
      static_cast<std::uint64_t>(layer) * 3 + static_cast<std::uint64_t>(plane));
  for (int i = 0; i < count; ++i) out[i] = near_normal(state = mixed(state));
}

mx::array packed(const Setup& setup, std::span<const int> tokens, int begin, int count, int layer,
                 Plane plane) {
  const LayerNeed& need = setup.needs[static_cast<std::size_t>(layer)];
  const int heads = plane == Plane::queries ? kHeads : need.kv_heads;
  const int dims[] = {need.query_dim(), need.key_dim, need.value_dim};
  return filled({count, heads, dims[static_cast<std::size_t>(plane)]}, tokens, begin, layer, plane, 1);
}

RecurrentInputs recurrent_inputs(const Setup& setup, std::span<const int> tokens, int begin, int count,
                                 int layer) {
  const RecurrentNeed& need = setup.needs[static_cast<std::size_t>(layer)].recurrent;
  const std::vector<int> fixed(static_cast<std::size_t>(need.channels), 1);
  return {.mixed = filled({count, need.channels}, tokens, begin, layer, Plane::queries, 1),
          .conv_weight = filled({need.channels, need.kernel}, fixed, 0, layer, Plane::queries, 0.5f),
          .decay = filled({count, need.value_heads}, tokens, begin, layer, Plane::keys, 1),
          .update = filled({count, need.value_heads}, tokens, begin, layer, Plane::values, 1),
          .a_log = mx::array({0.1f, -0.4f}),
          .dt_bias = mx::array({0.3f, -0.2f})};
}

mx::array recurred(const Setup& setup, ops::NativeRuntime& runtime, Step& step, int layer, const RecurrentInputs& inputs) {
  if (setup.mode == NumericMode::reference) return step.layer(layer).recur(inputs);
  const auto index = static_cast<std::size_t>(layer);
  return testing_support::native_recur(runtime, setup.needs[index].recurrent, step.native_layers().delta[index], inputs);
}

}  // namespace godwit::cache::state_test
