#include "serve/prompt_logprobs.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "serve/request_error.h"

namespace godwit::serve {
namespace {

// All rows of logits are held at once.
constexpr std::size_t kMostLogitBytes = std::size_t{4} << 30;

double log_sum_exp(std::span<const float> logits) {
  const double highest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - highest);
  return highest + std::log(sum);
}

std::vector<decode::TokenLogprob> likeliest(std::span<const float> logits, double normaliser, int top) {
  std::vector<int> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto count = std::min<std::size_t>(static_cast<std::size_t>(top), ids.size());
  std::partial_sort(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count), ids.end(),
                    [&](int a, int b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; });
  std::vector<decode::TokenLogprob> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back({ids[i], logits[ids[i]] - normaliser});
  return out;
}

}  // namespace

std::vector<LogprobEntry> prompt_logprobs(Generator& generator, const ServedModel& model,
                                          const std::vector<int>& prompt, int top) {
  const auto vocabulary = static_cast<std::size_t>(model.vocabulary);
  if (prompt.size() > kMostLogitBytes / sizeof(float) / vocabulary)
    throw RequestError(
        ErrorCode::unsupported,
        fmt::format("log-probabilities of a prompt are served for up to {} tokens with this model, "
                    "the prompt has {}",
                    kMostLogitBytes / sizeof(float) / vocabulary, prompt.size()),
        {.param = "prompt", .code = "unsupported_parameter"});
  const std::vector<float> logits = prompt.size() > 1 ? generator.logits(prompt) : std::vector<float>();
  TokenText text(model.need_tokenizer());
  std::vector<LogprobEntry> entries;
  for (std::size_t t = 0; t < prompt.size(); ++t) {
    TokenPiece piece = text.add(prompt[t]);
    LogprobEntry entry{.id = prompt[t], .bytes = std::move(piece.bytes), .text_offset = piece.points};
    if (t > 0) {
      const auto row = std::span(logits).subspan((t - 1) * vocabulary, vocabulary);
      const double normaliser = log_sum_exp(row);
      entry.logprob = row[static_cast<std::size_t>(prompt[t])] - normaliser;
      entry.top = likeliest(row, normaliser, top);
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace godwit::serve
