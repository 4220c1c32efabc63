// Teacher-forced runs over windows of a text: the model reads tokens that are given, and what it expected is
// measured. Each window is a row of its own.
#pragma once

#include <span>
#include <vector>

#include "cache/state.h"
#include "decode/divergence.h"
#include "models/model_bundle.h"

namespace godwit::decode {

// Cuts `tokens` into runs of `size`, each behind `prefix` (a begin token, or nothing) that counts as part of it. A rest
// that fills no window is left out, unless it is all there is. size > prefix.size().
std::vector<std::vector<int>> cut_windows(std::span<const int> tokens, std::size_t size,
                                          std::span<const int> prefix = {});

// True where some layer's keys and values are ever encoded rather than kept densely.
bool encodes(const cache::KvPolicy& kv);

// Reads the first `prefill` tokens of the window in the chunks of a prompt, then the others one by one, in a row of
// `wanted` and in a row of `got`; adds the distance of the two distributions after each of the others.
// 0 <= prefill < window.size(). On the engine thread.
void compare_window(const models::ModelBundle& bundle, const cache::StateStore& wanted,
                    const cache::StateStore& got, std::span<const int> window, std::size_t prefill,
                    Divergence& total);

// The same run in one row: adds how well every token but the first was expected. prefill <= window.size().
void score_window(const models::ModelBundle& bundle, const cache::StateStore& store,
                  std::span<const int> window, std::size_t prefill, Perplexity& total);

// Logits after every token of the window but the last, [window - 1, vocabulary] f32 row-major, read as a prompt of a new
// row. window.size() >= 2. On the engine thread.
std::vector<float> window_logits(const models::ModelBundle& bundle, std::span<const int> window);

// What separates two ways to compute one model.
struct Fidelity {
  Divergence divergence;  // KL(wanted ‖ got)
  Perplexity wanted, got;

  // got's perplexity over wanted's, less one.
  double perplexity_change() const { return got.value() / wanted.value() - 1; }
  // Adds one window: what window_logits() gave for it in either way.
  void add(std::span<const float> wanted_logits, std::span<const float> got_logits, std::span<const int> window);
};

}  // namespace godwit::decode
