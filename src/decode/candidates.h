// The tokens that may still be drawn, and the truncating samplers over them. Everything is double precision;
// order and ties are fixed (larger logit first, then lower id), so kept sets do not depend on a sort's
// implementation.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace godwit::decode {

struct Candidate {
  int id;
  double logit;
};

class Candidates {
 public:
  // Every token whose logit is above -infinity, in id order. Throws Error{internal} when a logit is NaN or
  // +infinity or none is left: the request fails, not the engine.
  explicit Candidates(std::span<const double> logits);
  // Of `items` above -infinity, in id order or sorted, out of so many tokens. Throws Error{internal} when there is none.
  Candidates(std::vector<Candidate> items, std::size_t of);

  // Keeps the k largest. k < 1 keeps all.
  void keep_top_k(int k);
  // Keeps the smallest descending prefix whose probabilities add up to p; at least one token. p >= 1 keeps
  // all.
  void keep_top_p(double p);
  // Keeps tokens with a probability of at least m times the largest one. m <= 0 keeps all.
  void keep_min_p(double m);
  // XTC: when two or more tokens have a probability of at least `threshold`, removes all of those but the
  // last in order.
  void exclude_top_choices(double threshold);

  // Keeps what lies at most n standard deviations (of the logits that are left) below the largest. n <= 0 keeps all.
  void keep_top_n_sigma(double n);
  // Locally typical: the smallest set, nearest to the entropy first, whose probabilities add up to more than p.
  void keep_typical(double p);
  // Divides the logits. A temperature below 1e-5 keeps the best alone.
  void scale(double temperature);
  // Scales by a temperature within `range` of `middle`, at least 0: the share of the largest possible entropy, to the
  // power of `exponent`, says where.
  void scale_by_entropy(double middle, double range, double exponent);
  // Keeps what surprises by at most so many bits; at least the best.
  void keep_surprise(double bits);

  // Base 2 logarithm of the inverse of a candidate's probability.
  double surprise_of(int id) const;
  // In order, the largest first.
  void sort();

  std::span<const Candidate> items() const { return items_; }
  // The largest logit, at the lowest id.
  const Candidate& best() const;

 private:
  // Unnormalised probabilities exp(logit - largest), in the order of items().
  std::vector<double> weights() const;

  // -log of the probabilities, in the order of items(), and their mean.
  std::vector<double> surprises(double& entropy) const;

  std::vector<Candidate> items_;  // in id order, or sorted once a sampler had to sort
};

// Larger logit first, then lower id.
bool comes_before(const Candidate& a, const Candidate& b);

}  // namespace godwit::decode
