#include "decode/penalties.h"

#include <limits>

namespace godwit::decode {

Penalties::Penalties(const SamplingParams& params)
    : repetition_(params.repetition_penalty),
      presence_(params.presence_penalty),
      frequency_(params.frequency_penalty),
      window_(params.penalty_window < 0 ? std::numeric_limits<std::size_t>::max()
                                        : static_cast<std::size_t>(params.penalty_window)),
      active_(window_ > 0 && (repetition_ != 1.0 || presence_ != 0.0 || frequency_ != 0.0)) {}

void Penalties::see(Seen seen) {
  if (!active_) return;
  recent_.push_back(seen);
  Counts& counts = counts_[seen.token];
  ++counts.all;
  counts.made += seen.is_made ? 1 : 0;
  if (recent_.size() <= window_) return;
  const Seen gone = recent_.front();
  recent_.pop_front();
  const auto oldest = counts_.find(gone.token);
  oldest->second.made -= gone.is_made ? 1 : 0;
  if (--oldest->second.all == 0) counts_.erase(oldest);
}

void Penalties::apply(LogitRow& row) const {
  for (const auto& [token, counts] : counts_) {
    if (token < 0 || static_cast<std::size_t>(token) >= row.size()) continue;
    double logit = row.logit(token);
    logit = logit > 0 ? logit / repetition_ : logit * repetition_;
    if (counts.made > 0) logit -= frequency_ * counts.made + presence_;
    row.set(token, logit);
  }
}

}  // namespace godwit::decode
