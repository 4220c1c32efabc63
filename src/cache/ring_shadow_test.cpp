#include "cache/ring_shadow.h"

#include <gtest/gtest.h>

#include <numeric>
#include <optional>
#include <random>

namespace godwit::cache {
namespace {

// mlx-lm's RotatingKVCache with keep = 0, column by column: what its arrays would hold. Unwritten columns are
// empty.
class Simulation {
 public:
  explicit Simulation(int window) : window_(window) {}

  // The positions that attention sees, in column order.
  std::vector<int> append(int tokens) { return tokens == 1 ? append_one() : append_many(tokens); }

  // trim(): legal in the oracle while offset < window.
  void trim(int tokens) {
    offset_ -= tokens;
    head_ -= tokens;
  }
  int offset() const { return offset_; }

 private:
  using Columns = std::vector<std::optional<int>>;

  std::vector<int> append_one() {
    const int length = static_cast<int>(buffer_.size());
    if (offset_ >= length && length < window_) {
      buffer_.resize(buffer_.size() + static_cast<std::size_t>(std::min(256, window_ - offset_)));
      head_ = offset_;
    }
    if (const int excess = static_cast<int>(buffer_.size()) - window_; excess > 0) {
      buffer_.erase(buffer_.begin(), buffer_.begin() + excess);
      head_ = window_;
    }
    if (head_ == window_) head_ = 0;
    buffer_.at(static_cast<std::size_t>(head_++)) = offset_++;
    const auto seen = std::min(buffer_.size(), static_cast<std::size_t>(offset_));
    return values({buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(seen)});
  }

  std::vector<int> append_many(int tokens) {
    Columns columns = temporal();
    if (const int excess = static_cast<int>(columns.size()) - window_ + 1; excess > 0)
      columns.erase(columns.begin(), columns.begin() + excess);
    for (int i = 0; i < tokens; ++i) columns.emplace_back(offset_ + i);
    buffer_ = columns;
    offset_ += tokens;
    head_ = static_cast<int>(buffer_.size());
    return values(buffer_);
  }

  Columns temporal() const {
    const auto head = buffer_.begin() + head_;
    if (head == buffer_.end()) return buffer_;
    Columns columns;
    if (head_ < offset_) columns.assign(head, buffer_.end());
    columns.insert(columns.end(), buffer_.begin(), head);
    return columns;
  }

  static std::vector<int> values(const Columns& columns) {
    std::vector<int> positions;
    for (const std::optional<int>& column : columns) positions.push_back(column.value());
    return positions;
  }

  int window_;
  int offset_ = 0;
  int head_ = 0;
  Columns buffer_;
};

TEST(RingShadow, NamesTheColumnsOfMlxLmForRandomAppends) {
  const unsigned seed = 20261129;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 400; ++round) {
    const int window = 1 + static_cast<int>(random() % 12);
    RingShadow shadow(window);
    Simulation oracle(window);
    for (int step = 0; step < 40; ++step) {
      const int tokens = random() % 3 != 0 ? 1 : 1 + static_cast<int>(random() % 15);
      shadow.append(tokens);
      const std::vector<int> wanted = oracle.append(tokens);
      ASSERT_EQ(shadow.positions(), wanted) << "window " << window << ", step " << step;
      ASSERT_EQ(shadow.columns(), static_cast<int>(wanted.size()));
      ASSERT_EQ(shadow.temporal(), std::is_sorted(wanted.begin(), wanted.end()));
      // Only an unwrapped ring can be trimmed there.
      if (oracle.offset() < window && random() % 4 == 0) {
        const int cut = static_cast<int>(random() % static_cast<unsigned>(oracle.offset() + 1));
        shadow.truncate(cut);
        oracle.trim(cut);
      }
    }
  }
}

TEST(RingShadow, GrowsInStepsOf256ColumnsAndWrapsAtTheWindow) {
  RingShadow shadow(600);
  Simulation oracle(600);
  for (int step = 0; step < 1300; ++step) {
    shadow.append(1);
    ASSERT_EQ(shadow.positions(), oracle.append(1)) << step;
  }
}

TEST(RingShadow, AfterTwentySingleStepsAWindowOfEightHoldsTwelveToNineteen) {
  RingShadow shadow(8);
  for (int step = 0; step < 20; ++step) shadow.append(1);
  EXPECT_EQ(shadow.positions(), (std::vector<int>{16, 17, 18, 19, 12, 13, 14, 15}));
}

// Beyond the oracle: undoing what a wrapped ring can spare, then appending the same again, leads to the same
// columns.
TEST(RingShadow, UndoneTokensComeBackToTheSameColumns) {
  for (int warm = 1; warm < 30; ++warm) {
    RingShadow once(8), twice(8);
    for (int step = 0; step < warm; ++step) once.append(1), twice.append(1);
    once.append(1);
    twice.append(1);
    twice.truncate(1);
    twice.append(1);
    EXPECT_EQ(once.positions(), twice.positions()) << warm;
    once.append(5);
    twice.append(5);
    twice.truncate(5);
    twice.append(5);
    EXPECT_EQ(once.positions(), twice.positions()) << warm;
  }
}

}  // namespace
}  // namespace godwit::cache
