#include "decode/sampler.h"

#include <algorithm>
#include <vector>

#include "decode/noise.h"

namespace godwit::decode {

Sampler::Sampler(const SamplingParams& params, std::uint64_t seed, int choice)
    : params_(params),
      seed_(seed),
      choice_(static_cast<std::uint32_t>(choice)),
      penalties_(params),
      dry_(params),
      mirostat_(params) {
  for (const SamplerStage stage : params_.order)
    if (stage != SamplerStage::penalties && stage != SamplerStage::dry && is_on(stage)) stages_.push_back(stage);
}

void Sampler::see_prompt(int token) {
  penalties_.see_prompt(token);
  dry_.see(token);
}

void Sampler::see_answer(int token) {
  penalties_.see_answer(token);
  dry_.see(token);
  mirostat_.see(token);
  if (!params_.bad_words.empty()) answer_.push_back(token);
}

bool Sampler::is_plain_greedy() const {
  return params_.greedy() && params_.logit_bias.empty() && !penalties_.active() && !dry_.is_active() &&
         params_.bad_words.empty() && !params_.allowed_ids;
}

bool Sampler::is_on(SamplerStage stage) const {
  switch (stage) {
    case SamplerStage::penalties:
      return penalties_.active();
    case SamplerStage::dry:
      return dry_.is_active();
    case SamplerStage::top_n_sigma:
      return params_.top_n_sigma > 0;
    case SamplerStage::top_k:
      return params_.top_k > 0;
    case SamplerStage::typical:
      return params_.typical_p < 1;
    case SamplerStage::top_p:
      return params_.top_p < 1;
    case SamplerStage::min_p:
      return params_.min_p > 0;
    case SamplerStage::xtc:
      return params_.xtc_probability > 0;
    case SamplerStage::temperature:
      return true;
  }
  return false;
}

void Sampler::apply(SamplerStage stage, Candidates& candidates, int position) const {
  switch (stage) {
    case SamplerStage::top_n_sigma:
      return candidates.keep_top_n_sigma(params_.top_n_sigma);
    case SamplerStage::top_k:
      return candidates.keep_top_k(params_.top_k);
    case SamplerStage::typical:
      return candidates.keep_typical(params_.typical_p);
    case SamplerStage::top_p:
      return candidates.keep_top_p(params_.top_p);
    case SamplerStage::min_p:
      return candidates.keep_min_p(params_.min_p);
    case SamplerStage::xtc:
      if (Noise(seed_, choice_, static_cast<std::uint32_t>(position)).coin() < params_.xtc_probability)
        candidates.exclude_top_choices(params_.xtc_threshold);
      return;
    case SamplerStage::temperature:
      if (params_.dynatemp_range > 0)
        return candidates.scale_by_entropy(params_.temperature, params_.dynatemp_range, params_.dynatemp_exponent);
      return candidates.scale(params_.temperature);
    case SamplerStage::penalties:
    case SamplerStage::dry:
      return;  // moved logits before there were candidates
  }
}

void Sampler::bar_words(LogitRow& row) const {
  for (const std::vector<int>& word : params_.bad_words) {
    const std::size_t before = word.size() - 1;
    if (before <= answer_.size() && std::equal(word.begin(), word.end() - 1, answer_.end() - static_cast<std::ptrdiff_t>(before)))
      row.bar(word.back(), "bad_words");
  }
}

LogitRow Sampler::adjusted(std::span<const float> logits, std::span<const std::uint32_t> mask,
                           std::string_view masked_by) const {
  LogitRow row(logits, mask, masked_by);
  for (const auto& [id, bias] : params_.logit_bias) {
    if (bias <= SamplingParams::kBan)
      row.bar(id, "logit_bias");
    else
      row.add(id, bias);
  }
  for (const SamplerStage stage : params_.order) {
    if (stage == SamplerStage::penalties && penalties_.active()) penalties_.apply(row);
    if (stage != SamplerStage::dry || !dry_.is_active()) continue;
    for (const auto& [id, penalty] : dry_.penalties())
      if (id >= 0 && static_cast<std::size_t>(id) < row.size()) row.add(id, -penalty);
  }
  bar_words(row);
  if (params_.allowed_ids) row.bar_all_but(*params_.allowed_ids, "allowed_token_ids");
  return row;
}

Candidates Sampler::candidates(std::span<const float> logits, int position, std::span<const std::uint32_t> mask,
                               std::string_view masked_by) const {
  const LogitRow row = adjusted(logits, mask, masked_by);
  if (params_.greedy()) return row.largest(1);
  if (mirostat_.is_active()) {
    Candidates left = row.all();
    apply(SamplerStage::temperature, left, position);
    mirostat_.truncate(left, logits.size());
    return left;
  }
  const bool is_at_once = !stages_.empty() && stages_[0] == SamplerStage::top_k && params_.top_k <= kMostAtOnce;
  Candidates left = is_at_once ? row.largest(params_.top_k) : row.all();
  for (const SamplerStage stage : std::span(stages_).subspan(is_at_once ? 1 : 0)) apply(stage, left, position);
  return left;
}

int Sampler::choose(std::span<const float> logits, int position, std::span<const std::uint32_t> mask,
                    std::string_view masked_by) {
  const Candidates left = candidates(logits, position, mask, masked_by);
  if (params_.greedy()) return left.best().id;
  const int id = draw(left, position);
  if (mirostat_.is_active()) mirostat_.chosen(left, id);
  return id;
}

int Sampler::draw(const Candidates& candidates, int position) const {
  // Gumbel-max: argmax of logit + g(id) has the softmax distribution. Starting with the likeliest token
  // makes the bound refuse almost every other one before a logarithm is taken.
  const Noise noise(seed_, choice_, static_cast<std::uint32_t>(position));
  const auto bits_of = [&](const Candidate& item) {
    return noise.token_bits(static_cast<std::uint32_t>(item.id));
  };
  const Candidate& likeliest = candidates.best();
  Candidate winner{likeliest.id, likeliest.logit + Noise::gumbel(bits_of(likeliest))};
  for (const Candidate& item : candidates.items()) {
    const std::uint64_t bits = bits_of(item);
    if (item.logit + Noise::gumbel_bound(bits) < winner.logit) continue;
    const Candidate score{item.id, item.logit + Noise::gumbel(bits)};
    if (comes_before(score, winner)) winner = score;
  }
  return winner.id;
}

}  // namespace godwit::decode
