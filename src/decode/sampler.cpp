#include "decode/sampler.h"

#include <limits>
#include <vector>

#include "decode/noise.h"

namespace godwit::decode {

Sampler::Sampler(const SamplingParams& params, std::uint64_t seed, int choice)
    : params_(params), seed_(seed), choice_(static_cast<std::uint32_t>(choice)), penalties_(params) {}

bool Sampler::is_plain_greedy() const {
  return params_.greedy() && params_.logit_bias.empty() && !penalties_.active();
}

void Sampler::bar(std::span<double> logits, std::span<const std::uint32_t> mask) {
  if (mask.empty()) return;
  for (std::size_t id = 0; id < logits.size(); ++id) {
    const bool is_allowed = id / 32 < mask.size() && (mask[id / 32] >> (id % 32) & 1) != 0;
    if (!is_allowed) logits[id] = -std::numeric_limits<double>::infinity();
  }
}

Candidates Sampler::candidates(std::span<const float> logits, int position, std::span<const std::uint32_t> mask) const {
  std::vector<double> adjusted(logits.begin(), logits.end());
  for (const auto& [id, bias] : params_.logit_bias) adjusted[static_cast<std::size_t>(id)] += bias;
  penalties_.apply(adjusted);
  bar(adjusted, mask);
  Candidates left(adjusted);
  if (params_.greedy()) return left;
  left.keep_top_k(params_.top_k);
  left.keep_top_p(params_.top_p);
  left.keep_min_p(params_.min_p);
  const Noise noise(seed_, choice_, static_cast<std::uint32_t>(position));
  if (params_.xtc_probability > 0 && noise.coin() < params_.xtc_probability)
    left.exclude_top_choices(params_.xtc_threshold);
  return left;
}

int Sampler::choose(std::span<const float> logits, int position, std::span<const std::uint32_t> mask) const {
  const Candidates left = candidates(logits, position, mask);
  return params_.greedy() ? left.best().id : draw(left, position);
}

int Sampler::draw(const Candidates& candidates, int position) const {
  // Gumbel-max: argmax of logit / T + g(id) has the softmax distribution. Starting with the likeliest token
  // makes the bound refuse almost every other one before a logarithm is taken.
  const Noise noise(seed_, choice_, static_cast<std::uint32_t>(position));
  const auto bits_of = [&](const Candidate& item) {
    return noise.token_bits(static_cast<std::uint32_t>(item.id));
  };
  const Candidate& likeliest = candidates.best();
  Candidate winner{likeliest.id, likeliest.logit / params_.temperature + Noise::gumbel(bits_of(likeliest))};
  for (const Candidate& item : candidates.items()) {
    const std::uint64_t bits = bits_of(item);
    const double scaled = item.logit / params_.temperature;
    if (scaled + Noise::gumbel_bound(bits) < winner.logit) continue;
    const Candidate score{item.id, scaled + Noise::gumbel(bits)};
    if (comes_before(score, winner)) winner = score;
  }
  return winner.id;
}

}  // namespace godwit::decode
