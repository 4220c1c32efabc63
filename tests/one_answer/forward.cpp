#include "one_answer/forward.h"

#include <cstring>

#include "one_answer/tiny_gguf.h"

namespace godwit::one_answer {

Logits native_step(const models::ModelBundle& model, const cache::StateStore& store,
                   std::span<const cache::RowSpan> spans, std::span<const int> tokens) {
  cache::Step step = store.plan(spans);
  const auto values = model.forward(tokens, step, ops::StepOutput::logits);
  Logits logits(values.begin(), values.end());
  step.publish();
  return logits;
}

Logits feed_whole(const models::ModelBundle& model, const cache::StateStore& store, cache::Row& row,
                  std::span<const int> tokens) {
  return feed(model, store, row, tokens, [&] { return tokens.size(); });
}

std::span<const float> rows_of(const Logits& logits, std::size_t begin, std::size_t count) {
  return std::span(logits).subspan(begin * kVocabulary, count * kVocabulary);
}

testing::AssertionResult same_bits(std::span<const float> actual, std::span<const float> wanted) {
  if (actual.size() != wanted.size())
    return testing::AssertionFailure() << actual.size() << " values in the place of " << wanted.size();
  for (std::size_t i = 0; i < actual.size(); ++i)
    if (std::memcmp(&actual[i], &wanted[i], sizeof(float)) != 0)
      return testing::AssertionFailure() << "token " << i / kVocabulary << " of the span, logit " << i % kVocabulary
                                         << ": " << actual[i] << " in the place of " << wanted[i];
  return testing::AssertionSuccess();
}

int between(std::mt19937& random, int least, int most) {
  return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
}

}  // namespace godwit::one_answer
