// How good a model's next-token distributions are: against those of another run (KL), and against the text
// itself (perplexity). Double precision throughout, from the f32 logits.
#pragma once

#include <cstdint>
#include <span>

namespace godwit::decode {

// log Σ exp(logit), shifted by the largest so that nothing overflows. Error{internal} for logits that hold NaN or
// +infinity, or nothing above -infinity.
double log_sum_exp(std::span<const float> logits);

// Sum over the vocabulary of p (log p - log q), in nats, p the softmax of `wanted` and q that of `got`. Exactly 0 for
// equal logits, never below 0; infinite where p has a token that q excludes. Both of one length.
double kl_divergence(std::span<const float> wanted, std::span<const float> got);

// The largest logit, ties to the lowest id.
int likeliest_token(std::span<const float> logits);

// KL(wanted ‖ got) over many positions.
class Divergence {
 public:
  void add(std::span<const float> wanted, std::span<const float> got);

  std::int64_t positions() const { return positions_; }
  double mean() const { return sum_ / static_cast<double>(positions_); }  // nats; some position was added
  double largest() const { return largest_; }
  double top1_agreement() const;  // part of the positions whose likeliest token is the same

 private:
  std::int64_t positions_ = 0, agreeing_ = 0;
  double sum_ = 0, largest_ = 0;
};

// exp of the mean of -log p(token that came).
class Perplexity {
 public:
  void add(std::span<const float> logits, int next);

  std::int64_t positions() const { return positions_; }
  double value() const;  // some position was added
  // value() · s / √positions with s the deviation of -log p over positions: the delta method. 0 for one position.
  double standard_error() const;

 private:
  double mean() const { return sum_ / static_cast<double>(positions_); }

  std::int64_t positions_ = 0;
  double sum_ = 0, sum_of_squares_ = 0;
};

}  // namespace godwit::decode
