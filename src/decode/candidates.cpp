#include "decode/candidates.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "decode/portable_math.h"

namespace godwit::decode {

bool comes_before(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

Candidates::Candidates(std::span<const double> logits) {
  items_.reserve(logits.size());
  for (std::size_t id = 0; id < logits.size(); ++id) {
    const double logit = logits[id];
    if (std::isnan(logit) || logit == INFINITY)
      fail(ErrorCode::internal, "sampling", "the model's logit of token {} is {}", id, logit);
    if (logit > -INFINITY) items_.push_back({static_cast<int>(id), logit});
  }
  if (items_.empty())
    fail(ErrorCode::internal, "sampling", "no token can be chosen: all {} logits are -infinity",
         logits.size());
}

const Candidate& Candidates::best() const {
  return *std::min_element(items_.begin(), items_.end(), comes_before);
}

std::vector<double> Candidates::weights() const {
  const double largest = best().logit;
  std::vector<double> weights(items_.size());
  std::transform(items_.begin(), items_.end(), weights.begin(),
                 [largest](const Candidate& item) { return portable_exp(item.logit - largest); });
  return weights;
}

void Candidates::keep_top_k(int k) {
  const auto kept = static_cast<std::size_t>(std::max(k, 0));
  if (kept < 1 || kept >= items_.size()) return;
  const auto end = items_.begin() + static_cast<std::ptrdiff_t>(kept);
  std::nth_element(items_.begin(), end, items_.end(), comes_before);
  items_.erase(end, items_.end());
  std::sort(items_.begin(), items_.end(), comes_before);
}

void Candidates::keep_top_p(double p) {
  if (p >= 1) return;
  const std::vector<double> all = weights();
  const double wanted = p * std::accumulate(all.begin(), all.end(), 0.0);
  const double largest = best().logit;
  // Sorting a whole vocabulary costs more than the rest of sampling: sort a head that grows until it holds
  // enough.
  std::size_t sorted = 0;
  double reached = 0;
  for (std::size_t head = 1024;; head *= 8) {
    head = std::min(head, items_.size());
    const auto begin = items_.begin() + static_cast<std::ptrdiff_t>(sorted);
    const auto end = items_.begin() + static_cast<std::ptrdiff_t>(head);
    std::nth_element(begin, end - 1, items_.end(), comes_before);
    std::sort(begin, end, comes_before);
    for (; sorted < head; ++sorted) {
      reached += portable_exp(items_[sorted].logit - largest);
      if (reached >= wanted) {
        items_.resize(sorted + 1, Candidate{});
        return;
      }
    }
    if (head == items_.size()) return;  // rounding kept the sum below p: everything stays
  }
}

void Candidates::keep_min_p(double m) {
  if (m <= 0) return;
  const double largest = best().logit;
  std::erase_if(items_, [&](const Candidate& item) { return portable_exp(item.logit - largest) < m; });
}

void Candidates::exclude_top_choices(double threshold) {
  const std::vector<double> all = weights();
  const double needed = threshold * std::accumulate(all.begin(), all.end(), 0.0);
  std::vector<std::size_t> top;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i] >= needed) top.push_back(i);
  if (top.size() < 2) return;
  const auto earlier = [this](std::size_t a, std::size_t b) { return comes_before(items_[a], items_[b]); };
  const std::size_t spared = *std::max_element(top.begin(), top.end(), earlier);
  std::vector<Candidate> kept;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i] < needed || i == spared) kept.push_back(items_[i]);
  items_ = std::move(kept);
}

}  // namespace godwit::decode
