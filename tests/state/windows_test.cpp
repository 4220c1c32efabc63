// What a query sees, shown by tags (reference/kv.md 12, numbers in brackets).
#include <gtest/gtest.h>

#include <iostream>
#include <random>

#include "state/over_all.h"
#include "state/tags.h"

namespace godwit::cache::state_test {
namespace {

// What it throws is a failure.
template <typename Body>
void holds(Body&& body) {
  try {
    body();
  } catch (const std::exception& e) {
    ADD_FAILURE() << e.what();
  }
}

// A step of several rows, or of each row in turn where a step takes one.
void append(NumericMode mode, TaggedRows& rows, const std::vector<int>& tokens) {
  if (mode == NumericMode::native) return rows.append(tokens);
  for (std::size_t r = 0; r < tokens.size(); ++r) {
    std::vector<int> one(tokens.size(), 0);
    one[r] = tokens[r];
    rows.append(one);
  }
}

TEST(StateWindows, AQuerySeesItsWindowAndNothingElse) {  // [15]
  const std::vector<std::vector<int>> histories = {{13},
                                                   {7},
                                                   {8},
                                                   {9},
                                                   {5, 6, 9},
                                                   {5, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
                                                   {5, 1, 1, 1, 1, 1, 1, 5, 4},
                                                   {13, 1, 1},
                                                   {7, 1, 1},
                                                   {3, 1, 12, 1, 1, 20, 1},
                                                   {60, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}};
  for (const NumericMode mode : kModes)
    for (const auto& history : histories)
      holds([&] {
        TaggedRows rows(mode, 8, 1);
        for (const int tokens : history) {
          rows.append({tokens});
          rows.read(0);
        }
      });
}

TEST(StateWindows, TheNewestTokensOfALongSpanAreKept) {  // [17]
  for (const NumericMode mode : kModes)
    for (const int window : {8, 40, 100})
      holds([&] {
        TaggedRows rows(mode, window, 1);
        rows.append({window + 5});
        for (const int position : {window + 5, window + 3}) {
          rows.row(0).fork(position);
          rows.read(0);
        }
        rows.append({1});
        rows.append({3});
      });
}

TEST(StateWindows, EachRowOfAStepHasItsOwn) {  // [16]; the sequences have 10,000 more
  std::mt19937 random(16);
  constexpr int kChunks[] = {0, 1, 1, 2, 3, 5, 12};
  for (const NumericMode mode : kModes)
    for (const int window : {4, 8, 9})
      for (int history = 0; history < 30; ++history)
        holds([&] {
          TaggedRows rows(mode, window, 3);
          for (int step = 0; step < 14; ++step)
            append(mode, rows, {kChunks[random() % 7], kChunks[random() % 7], kChunks[random() % 7]});
        });
}

TEST(StateWindows, RoundsWithAKeepForEachRow) {  // [20]
  std::mt19937 random(20);
  const std::vector<std::vector<int>> starts = {{0, 0, 0}, {0, 5, 7}, {2, 5, 7}, {9, 15, 21}, {60, 62, 70}};
  for (const NumericMode mode : kModes)
    for (const int window : {0, 4, 8})
      for (const auto& start : starts)
        holds([&] {
          TaggedRows rows(mode, window, 3);
          append(mode, rows, start);
          for (int round = 0; round < 30; ++round) {
            const int tokens = 1 + static_cast<int>(random() % 5);
            rows.begin();
            append(mode, rows, {tokens, tokens, tokens});
            std::vector<int> keep;
            for (int r = 0; r < 3; ++r)
              keep.push_back(static_cast<int>(random() % static_cast<unsigned>(tokens + 1)));
            rows.rollback(keep);
            if (round % 3 == 0) append(mode, rows, {1, 0, 1});
            for (int r = 0; r < 3; ++r)
              if (rows.length(r) > 0) rows.read(r);
          }
        });
}

}  // namespace
}  // namespace godwit::cache::state_test
