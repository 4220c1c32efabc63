#include "decode/logit_row.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include <fmt/ranges.h>

#include "base/error.h"

namespace godwit::decode {
namespace {

constexpr std::size_t kBlock = 32;  // ids of a word of the mask
constexpr std::uint32_t kWhole = ~std::uint32_t{0};

// Whether any value is at least `least`, or no number.
bool has_some(const float* values, float least) {
  bool found = false;
  for (std::size_t i = 0; i < kBlock; ++i) found |= !(values[i] < least);
  return found;
}

// The largest float that is not above.
float at_most(double value) {
  const auto rounded = static_cast<float>(value);
  return static_cast<double>(rounded) > value
             ? std::nextafter(rounded, -std::numeric_limits<float>::infinity())
             : rounded;
}

void check(int id, double logit) {
  if (std::isnan(logit) || logit == INFINITY)
    fail(ErrorCode::internal, "sampling", "the model's logit of token {} is {}", id, logit);
}

// The k first in order, the last of them on top.
class Best {
 public:
  explicit Best(int k) : most_(static_cast<std::size_t>(k)) { heap_.reserve(most_); }

  void offer(int id, double logit) {
    check(id, logit);
    if (logit == -INFINITY) return;
    const Candidate item{id, logit};
    if (heap_.size() == most_) {
      if (!comes_before(item, heap_.front())) return;
      std::pop_heap(heap_.begin(), heap_.end(), comes_before);
      heap_.pop_back();
    }
    heap_.push_back(item);
    std::push_heap(heap_.begin(), heap_.end(), comes_before);
    if (heap_.size() == most_) least_ = at_most(heap_.front().logit);
  }
  float least() const { return least_; }
  std::vector<Candidate> sorted() && {
    std::sort(heap_.begin(), heap_.end(), comes_before);
    return std::move(heap_);
  }

 private:
  std::size_t most_;
  std::vector<Candidate> heap_;
  float least_ = -std::numeric_limits<float>::infinity();  // what is below cannot enter
};

}  // namespace

LogitRow::LogitRow(std::span<const float> logits, std::span<const std::uint32_t> mask, std::string_view masked_by)
    : logits_(logits), mask_(mask) {
  if (!mask.empty()) note(masked_by);
}

double LogitRow::logit(int id) const {
  const auto found = changed_.find(id);
  return found != changed_.end() ? found->second : logits_[static_cast<std::size_t>(id)];
}

void LogitRow::own_mask() {
  if (!own_.empty()) return;
  own_.assign(mask_.begin(), mask_.end());
  own_.resize((logits_.size() + kBlock - 1) / kBlock, mask_.empty() ? kWhole : 0);
  mask_ = own_;
}

void LogitRow::note(std::string_view by) {
  if (std::ranges::find(barred_by_, by) == barred_by_.end()) barred_by_.push_back(by);
}

void LogitRow::bar(int id, std::string_view by) {
  if (id < 0 || static_cast<std::size_t>(id) >= logits_.size()) return;
  own_mask();
  note(by);
  own_[static_cast<std::size_t>(id) / kBlock] &= ~(std::uint32_t{1} << (id % static_cast<int>(kBlock)));
}

void LogitRow::bar_all_but(std::span<const int> ids, std::string_view by) {
  own_mask();
  note(by);
  std::vector<std::uint32_t> kept(own_.size(), 0);
  for (const int id : ids) {
    const auto word = static_cast<std::size_t>(id) / kBlock;
    if (id >= 0 && word < kept.size()) kept[word] |= std::uint32_t{1} << (id % static_cast<int>(kBlock));
  }
  for (std::size_t i = 0; i < own_.size(); ++i) own_[i] &= kept[i];
}

bool LogitRow::is_allowed(int id) const {
  if (mask_.empty()) return true;
  const auto word = static_cast<std::size_t>(id) / kBlock;
  return word < mask_.size() && (mask_[word] >> (id % static_cast<int>(kBlock)) & 1) != 0;
}

// Whose fault it is that nothing is left: the request's, when the model would have had a token.
void LogitRow::check_some(bool is_empty) const {
  if (!is_empty || std::ranges::none_of(logits_, [](float logit) { return logit > -INFINITY; })) return;
  fail(ErrorCode::invalid_argument, "sampling", "no token can come here: what {} {} leaves none of the {} tokens",
       fmt::join(barred_by_, " and "), barred_by_.size() == 1 ? "bars" : "bar together", logits_.size());
}

Candidates LogitRow::all() const {
  std::vector<Candidate> items;
  if (mask_.empty()) items.reserve(logits_.size());
  for (std::size_t begin = 0; begin < logits_.size(); begin += kBlock) {
    const std::size_t word = begin / kBlock;
    const std::uint32_t bits = mask_.empty() ? kWhole : word < mask_.size() ? mask_[word] : 0;
    const std::size_t end = std::min(begin + kBlock, logits_.size());
    for (std::size_t id = begin; bits != 0 && id < end; ++id) {
      if ((bits >> (id - begin) & 1) == 0) continue;
      const double value = logits_[id];
      check(static_cast<int>(id), value);
      items.push_back({static_cast<int>(id), value});
    }
  }
  for (const auto& [id, value] : changed_) {
    if (!is_allowed(id)) continue;
    check(id, value);
    std::ranges::lower_bound(items, id, {}, &Candidate::id)->logit = value;
  }
  std::erase_if(items, [](const Candidate& item) { return item.logit == -INFINITY; });
  check_some(items.empty());
  return Candidates(std::move(items), logits_.size());
}

Candidates LogitRow::largest(int k) const {
  Best best(k);
  for (const auto& [id, value] : changed_)
    if (is_allowed(id)) best.offer(id, value);
  for (std::size_t begin = 0; begin < logits_.size(); begin += kBlock) {
    const std::size_t word = begin / kBlock, end = std::min(begin + kBlock, logits_.size());
    const std::uint32_t bits = mask_.empty() ? kWhole : word < mask_.size() ? mask_[word] : 0;
    if (bits == 0 || (end - begin == kBlock && !has_some(&logits_[begin], best.least()))) continue;
    for (std::size_t at = begin; at < end; ++at) {
      const int id = static_cast<int>(at);
      if ((bits >> (at - begin) & 1) == 0 || logits_[at] < best.least() || changed_.contains(id)) continue;
      best.offer(id, logits_[at]);
    }
  }
  std::vector<Candidate> items = std::move(best).sorted();
  check_some(items.empty());
  return Candidates(std::move(items), logits_.size());
}

}  // namespace godwit::decode
