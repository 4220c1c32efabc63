#include "decode/candidates.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "decode/portable_math.h"

namespace godwit::decode {
namespace {
constexpr double kLn2 = 0.693147180559945309417;
}  // namespace

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

Candidates::Candidates(std::vector<Candidate> items, std::size_t of) : items_(std::move(items)) {
  if (items_.empty())
    fail(ErrorCode::internal, "sampling", "no token can be chosen: all {} logits are -infinity or barred", of);
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
  // What is clearly below needs no exponential.
  const double clearly = largest + portable_log(m) - 1e-6;
  std::erase_if(items_, [&](const Candidate& item) {
    return item.logit < clearly || portable_exp(item.logit - largest) < m;
  });
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

std::vector<double> Candidates::surprises(double& entropy) const {
  const std::vector<double> all = weights();
  const double sum = std::accumulate(all.begin(), all.end(), 0.0);
  const double normaliser = best().logit + portable_log(sum);
  std::vector<double> surprises(all.size());
  entropy = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    surprises[i] = normaliser - items_[i].logit;
    entropy += all[i] / sum * surprises[i];
  }
  return surprises;
}

void Candidates::keep_top_n_sigma(double n) {
  if (n <= 0 || items_.size() < 2) return;
  const double count = static_cast<double>(items_.size());
  double sum = 0, squares = 0;
  for (const Candidate& item : items_) sum += item.logit;
  for (const Candidate& item : items_) squares += (item.logit - sum / count) * (item.logit - sum / count);
  const double least = best().logit - n * std::sqrt(squares / count);
  std::erase_if(items_, [least](const Candidate& item) { return item.logit < least; });
}

void Candidates::keep_typical(double p) {
  if (p >= 1 || items_.size() < 2) return;
  sort();
  double entropy = 0;
  const std::vector<double> all = surprises(entropy);
  const std::vector<double> mass = weights();
  const double wanted = p * std::accumulate(mass.begin(), mass.end(), 0.0);
  std::vector<std::size_t> order(items_.size());
  std::iota(order.begin(), order.end(), 0);
  const auto distance = [&](std::size_t i) { return std::abs(all[i] - entropy); };
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return distance(a) < distance(b); });
  double reached = 0;
  std::size_t kept = 0;
  while (kept < order.size() && reached <= wanted) reached += mass[order[kept++]];
  order.resize(kept);
  std::sort(order.begin(), order.end());
  std::vector<Candidate> left;
  for (const std::size_t i : order) left.push_back(items_[i]);
  items_ = std::move(left);
}

void Candidates::scale(double temperature) {
  if (temperature < 1e-5) {
    items_ = {best()};
    return;
  }
  for (Candidate& item : items_) item.logit /= temperature;
}

void Candidates::scale_by_entropy(double middle, double range, double exponent) {
  const double low = std::max(0.0, middle - range), high = middle + range;
  if (items_.size() < 2) return;
  double entropy = 0;
  surprises(entropy);
  const double share = std::clamp(entropy / portable_log(static_cast<double>(items_.size())), 0.0, 1.0);
  const double power = share > 0 ? portable_exp(exponent * portable_log(share)) : exponent == 0 ? 1.0 : 0.0;
  scale(low + (high - low) * power);
}

void Candidates::keep_surprise(double bits) {
  const Candidate spared = best();
  double entropy = 0;
  const std::vector<double> all = surprises(entropy);
  std::vector<Candidate> left;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i] / kLn2 <= bits || items_[i].id == spared.id) left.push_back(items_[i]);
  items_ = std::move(left);
}

double Candidates::surprise_of(int id) const {
  double entropy = 0;
  const std::vector<double> all = surprises(entropy);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (items_[i].id == id) return all[i] / kLn2;
  fail(ErrorCode::internal, "sampling", "token {} is not among the candidates", id);
}

void Candidates::sort() { std::sort(items_.begin(), items_.end(), comes_before); }

}  // namespace godwit::decode
