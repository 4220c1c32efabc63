// Forward passes over rows of any store of a model, and what a test compares of them.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <span>
#include <string>
#include <vector>

#include "models/model_bundle.h"

namespace godwit::one_answer {

using Logits = std::vector<float>;  // [tokens, kVocabulary]

// One native step over several rows, published. `tokens` holds the rows' tokens one row after another.
Logits native_step(const models::ModelBundle& model, const cache::StateStore& store,
                   std::span<const cache::RowSpan> spans, std::span<const int> tokens);
// All of `tokens` in steps of `size()` tokens each, cut where the row turns to its codec.
template <typename Size>
Logits feed(const models::ModelBundle& model, const cache::StateStore& store, cache::Row& row,
            std::span<const int> tokens, Size&& size);
Logits feed_whole(const models::ModelBundle& model, const cache::StateStore& store, cache::Row& row,
                  std::span<const int> tokens);

std::span<const float> rows_of(const Logits& logits, std::size_t begin, std::size_t count);

// Equal raw bits; the failure names the first token that differs.
testing::AssertionResult same_bits(std::span<const float> actual, std::span<const float> wanted);

int between(std::mt19937& random, int least, int most);

template <typename Size>
Logits feed(const models::ModelBundle& model, const cache::StateStore& store, cache::Row& row,
            std::span<const int> tokens, Size&& size) {
  Logits all;
  while (!tokens.empty()) {
    const int count = std::min({static_cast<int>(tokens.size()), static_cast<int>(size()), row.longest_span()});
    const cache::RowSpan span{&row, count};
    const Logits some = native_step(model, store, {&span, 1}, tokens.first(static_cast<std::size_t>(count)));
    all.insert(all.end(), some.begin(), some.end());
    tokens = tokens.subspan(static_cast<std::size_t>(count));
  }
  return all;
}

}  // namespace godwit::one_answer
