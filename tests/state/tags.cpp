#include "state/tags.h"

#include "base/mx_ops.h"
#include "kernels/select.h"

namespace godwit::cache::state_test {
namespace {

StateNeeds needs(int window) {
  LayerNeed need{.kv_heads = 1, .key_dim = 16, .value_dim = kMostTags};
  need.window = window > 0 ? WindowKind::sliding : WindowKind::full;
  need.window_size = window;
  return {need};
}

}  // namespace

TaggedRows::TaggedRows(NumericMode mode, int window, int rows)
    : runtime_(kernels::best_level(), 1),
      mode_(mode),
      window_(window),
      store_(needs(window), parse_kv_policy("dense:f32"), mode, &runtime_),
      lengths_(static_cast<std::size_t>(rows), 0) {
  for (int r = 0; r < rows; ++r) rows_.push_back(store_.create());
}

void TaggedRows::append(const std::vector<int>& tokens) {
  std::vector<RowSpan> spans;
  std::vector<int> who;
  std::vector<float> tags;
  for (std::size_t r = 0; r < tokens.size(); ++r) {
    if (tokens[r] == 0) continue;
    spans.push_back({&rows_[r], tokens[r]});
    who.push_back(static_cast<int>(r));
    for (int i = 0; i < tokens[r]; ++i) {
      tags.resize(tags.size() + kMostTags, 0.0f);
      tags[tags.size() - kMostTags + static_cast<std::size_t>(lengths_[r] + i)] = 1.0f;
    }
  }
  if (spans.empty()) return;
  const int all = static_cast<int>(tags.size()) / kMostTags;
  Step step = store_.plan(spans);
  const mx::array none = mx::zeros({all, 1, 16});
  const mx::array out =
      mx::contiguous(step.layer(0).attend(none, none, mx::array(tags.data(), {all, 1, kMostTags}), {}));
  std::vector<mx::array> pending = step.pending();
  pending.push_back(out);
  mx::eval(pending);
  step.publish();
  int at = 0;
  for (const int r : who) {
    int& length = lengths_[static_cast<std::size_t>(r)];
    for (int i = 0; i < tokens[static_cast<std::size_t>(r)]; ++i, ++length)
      check(out, at++, r, length, window_ > 0 ? std::max(0, length + 1 - window_) : 0, length + 1);
  }
}

void TaggedRows::read(int r) {
  const RowSpan span{&row(r), 1};
  Step step = store_.read({&span, 1});
  const mx::array out = mx::contiguous(step.layer(0).attend(mx::zeros({1, 1, 16}), {}));
  mx::eval(out);
  check(out, 0, r, length(r), window_ > 0 ? std::max(0, length(r) - window_) : 0, length(r));
}

void TaggedRows::begin() {
  before_ = lengths_;
  for (Row& row : rows_) rounds_.push_back(row.begin());
}

void TaggedRows::rollback(const std::vector<int>& keep) {
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    rounds_[r].rollback(keep[r]);
    lengths_[r] = before_[r] + keep[r];
  }
  rounds_.clear();
}

void TaggedRows::check(const mx::array& out, int at, int row, int query, int begin, int end) const {
  const float* tags = out.data<float>() + at * kMostTags;
  for (int position = 0; position < kMostTags; ++position)
    demand((tags[position] != 0) == (position >= begin && position < end),
           "row {}, a query at {} under a window of {}: position {} weighs {}", row, query, window_, position,
           tags[position]);
}

}  // namespace godwit::cache::state_test
