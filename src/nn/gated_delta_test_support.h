// A gated delta layer in the forms that files give it. Shared by the tests of its two modes.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "base/mx_ops.h"
#include "nn/gated_delta_mixer.h"
#include "support/random_array.h"

namespace godwit::nn::delta_test {

using Tensors = std::unordered_map<std::string, mx::array>;

// More value heads than key heads and other sizes: a wrong repetition or a transposed state shows.
inline constexpr int kHidden = 64, kKeyHeads = 2, kValueHeads = 6, kKeyDim = 16, kValueDim = 32, kKernel = 4;
inline constexpr int kKeys = kKeyHeads * kKeyDim, kValues = kValueHeads * kValueDim,
              kGroup = kValueHeads / kKeyHeads;

inline GatedDeltaMixer::Options options() {
  return {.hidden = kHidden,
          .key_heads = kKeyHeads,
          .value_heads = kValueHeads,
          .key_dim = kKeyDim,
          .value_dim = kValueDim,
          .kernel = kKernel,
          .norm_eps = 1e-6};
}

inline mx::array random_array(const mx::Shape& shape, unsigned seed, float spread = 1.0f) {
  return testing_support::random_array(shape, 20261130 + seed, spread);
}

inline Tensors flat_layer() {
  return {{"in_proj_qkv.weight", random_array({2 * kKeys + kValues, kHidden}, 1, 0.1f)},
          {"in_proj_z.weight", random_array({kValues, kHidden}, 2, 0.1f)},
          {"in_proj_b.weight", random_array({kValueHeads, kHidden}, 3, 0.1f)},
          {"in_proj_a.weight", random_array({kValueHeads, kHidden}, 4, 0.1f)},
          {"conv1d.weight", random_array({2 * kKeys + kValues, kKernel, 1}, 5, 0.5f)},
          {"A_log", random_array({kValueHeads}, 6)},
          {"dt_bias", random_array({kValueHeads}, 7)},
          {"norm.weight", random_array({kValueDim}, 8)},
          {"out_proj.weight", random_array({kHidden, kValues}, 9, 0.1f)}};
}

inline mx::array rows(const mx::array& x, int begin, int end) {
  mx::Shape from(x.ndim(), 0), to = x.shape();
  from[0] = begin;
  to[0] = end;
  return mx::slice(x, from, to);
}

// The rows of each key head behind each other: its q, its k, the values that read it, their z.
inline Tensors grouped_layer() {
  Tensors layer = flat_layer();
  const mx::array qkv = layer.at("in_proj_qkv.weight"), z = layer.at("in_proj_z.weight");
  const mx::array a = layer.at("in_proj_a.weight"), b = layer.at("in_proj_b.weight");
  std::vector<mx::array> qkvz, ba;
  const int width = kGroup * kValueDim;
  for (int head = 0; head < kKeyHeads; ++head) {
    qkvz.push_back(rows(qkv, head * kKeyDim, (head + 1) * kKeyDim));
    qkvz.push_back(rows(qkv, kKeys + head * kKeyDim, kKeys + (head + 1) * kKeyDim));
    qkvz.push_back(rows(qkv, 2 * kKeys + head * width, 2 * kKeys + (head + 1) * width));
    qkvz.push_back(rows(z, head * width, (head + 1) * width));
    ba.push_back(rows(b, head * kGroup, (head + 1) * kGroup));
    ba.push_back(rows(a, head * kGroup, (head + 1) * kGroup));
  }
  for (const char* const name : {"in_proj_qkv", "in_proj_z", "in_proj_a", "in_proj_b"})
    layer.erase(std::string(name) + ".weight");
  layer.emplace("in_proj_qkvz.weight", mx::concatenate(qkvz, 0));
  layer.emplace("in_proj_ba.weight", mx::concatenate(ba, 0));
  return layer;
}

// As llama.cpp's converter does it: [key heads, group, width] -> [group, key heads, width] on `axis`.
inline mx::array tiled(const mx::array& x, int axis, int width) {
  mx::Shape split = x.shape();
  split[static_cast<std::size_t>(axis)] = width;
  split.insert(split.begin() + axis, {kKeyHeads, kGroup});
  return mx::reshape(mx::swapaxes(mx::reshape(x, split), axis, axis + 1), x.shape());
}

inline mx::array tiled_values(const mx::array& x) {
  return mx::concatenate({rows(x, 0, 2 * kKeys), tiled(rows(x, 2 * kKeys, x.shape(0)), 0, kValueDim)}, 0);
}

inline Tensors gguf_layer() {
  Tensors layer = flat_layer();
  const auto change = [&](const std::string& name, auto&& into) {
    layer.insert_or_assign(name, mx::contiguous(into(layer.at(name))));
  };
  change("in_proj_qkv.weight", tiled_values);
  change("in_proj_z.weight", [](const mx::array& x) { return tiled(x, 0, kValueDim); });
  change("in_proj_a.weight", [](const mx::array& x) { return tiled(x, 0, 1); });
  change("in_proj_b.weight", [](const mx::array& x) { return tiled(x, 0, 1); });
  change("A_log", [](const mx::array& x) { return tiled(mx::negative(mx::exp(x)), 0, 1); });
  change("dt_bias", [](const mx::array& x) { return tiled(x, 0, 1); });
  change("conv1d.weight", [](const mx::array& x) { return mx::squeeze(tiled_values(x), 2); });
  change("out_proj.weight", [](const mx::array& x) { return tiled(x, 1, kValueDim); });
  return layer;
}

}  // namespace godwit::nn::delta_test
