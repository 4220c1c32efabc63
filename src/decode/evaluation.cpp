#include "decode/evaluation.h"

#include <algorithm>

#include "base/error.h"
#include "decode/row_runner.h"

namespace godwit::decode {
namespace {

// The next chunk of a prompt that ends at `prefill`.
std::span<const int> next_chunk(const RowRunner& runner, std::span<const int> window, std::size_t prefill) {
  const auto done = static_cast<std::size_t>(runner.position());
  return window.subspan(done, std::min(runner.chunk_tokens(), prefill - done));
}

}  // namespace

std::vector<std::vector<int>> cut_windows(std::span<const int> tokens, std::size_t size,
                                          std::span<const int> prefix) {
  GODWIT_CHECK(size > prefix.size(), "windows of {} tokens behind {}", size, prefix.size());
  const std::size_t run = size - prefix.size();
  std::vector<std::vector<int>> windows;
  for (; tokens.size() >= run || (windows.empty() && !tokens.empty());
       tokens = tokens.subspan(std::min(run, tokens.size()))) {
    std::vector<int>& window = windows.emplace_back(prefix.begin(), prefix.end());
    const std::span<const int> part = tokens.first(std::min(run, tokens.size()));
    window.insert(window.end(), part.begin(), part.end());
  }
  return windows;
}

bool encodes(const cache::KvPolicy& kv) {
  const auto is_encoded = [](const cache::Codec& codec) { return codec.kind != cache::CodecKind::dense; };
  return is_encoded(kv.codec) ||
         std::ranges::any_of(kv.layers, [&](const auto& layer) { return is_encoded(layer.second); });
}

void compare_window(const models::ModelBundle& bundle, const cache::StateStore& wanted,
                    const cache::StateStore& got, std::span<const int> window, std::size_t prefill,
                    Divergence& total) {
  GODWIT_CHECK(prefill < window.size(), "a prefill of {} in a window of {}", prefill, window.size());
  RowRunner wanted_row(bundle, wanted), got_row(bundle, got);
  for (RowRunner* runner : {&wanted_row, &got_row})
    while (static_cast<std::size_t>(runner->position()) < prefill)
      runner->store(next_chunk(*runner, window, prefill));
  for (std::size_t at = prefill; at < window.size(); ++at) {
    const std::span<const int> token = window.subspan(at, 1);
    const std::vector<float> wanted_logits = wanted_row.logits(token);
    total.add(wanted_logits, got_row.logits(token));
  }
}

void score_window(const models::ModelBundle& bundle, const cache::StateStore& store,
                  std::span<const int> window, std::size_t prefill, Perplexity& total) {
  GODWIT_CHECK(prefill <= window.size(), "a prefill of {} in a window of {}", prefill, window.size());
  RowRunner runner(bundle, store);
  const auto width = static_cast<std::size_t>(bundle.vocabulary);
  while (static_cast<std::size_t>(runner.position()) + 1 < window.size()) {
    const auto at = static_cast<std::size_t>(runner.position());
    const std::span<const int> chunk =
        at < prefill ? next_chunk(runner, window, prefill) : window.subspan(at, 1);
    const std::vector<float> logits = runner.logits(chunk);
    for (std::size_t i = 0; i < chunk.size() && at + i + 1 < window.size(); ++i)
      total.add(std::span(logits).subspan(i * width, width), window[at + i + 1]);
  }
}

std::vector<float> window_logits(const models::ModelBundle& bundle, std::span<const int> window) {
  GODWIT_CHECK(window.size() >= 2, "a window of {}", window.size());
  return RowRunner(bundle).logits(window.first(window.size() - 1));
}

void Fidelity::add(std::span<const float> wanted_logits, std::span<const float> got_logits,
                   std::span<const int> window) {
  const std::size_t positions = window.size() - 1, width = wanted_logits.size() / positions;
  GODWIT_CHECK(wanted_logits.size() == positions * width && got_logits.size() == wanted_logits.size(),
               "logits of {} and {} numbers for {} positions", wanted_logits.size(), got_logits.size(), positions);
  for (std::size_t at = 0; at < positions; ++at) {
    const auto wanted_row = wanted_logits.subspan(at * width, width);
    const auto got_row = got_logits.subspan(at * width, width);
    divergence.add(wanted_row, got_row);
    wanted.add(wanted_row, window[at + 1]);
    got.add(got_row, window[at + 1]);
  }
}

}  // namespace godwit::decode
