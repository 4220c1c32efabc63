#include "decode/sampling_params.h"

#include <cmath>

#include "base/error.h"

namespace godwit::decode {
namespace {

// NaN is in no range, so it is refused too.
void in_range(std::string_view field, double value, double low, double high) {
  if (value >= low && value <= high) return;
  if (std::isinf(high))
    fail(ErrorCode::invalid_argument, "sampling", "{} is {}: at least {} is needed", field, value, low);
  fail(ErrorCode::invalid_argument, "sampling", "{} is {}: it must lie in [{}, {}]", field, value, low, high);
}

void finite(std::string_view field, double value) {
  if (!std::isfinite(value))
    fail(ErrorCode::invalid_argument, "sampling", "{} is {}, not a finite number", field, value);
}

void known_token(std::string_view field, int id, int vocabulary) {
  if (id < 0 || id >= vocabulary)
    fail(ErrorCode::invalid_argument, "sampling", "{} holds token {}: the vocabulary has {} tokens", field, id,
         vocabulary);
}

void validate_rare(const SamplingParams& params) {
  in_range("typical_p", params.typical_p, 0, 1);
  finite("top_n_sigma", params.top_n_sigma);
  finite("dynatemp_range", params.dynatemp_range);
  in_range("dynatemp_range", params.dynatemp_range, 0, INFINITY);
  finite("dynatemp_exponent", params.dynatemp_exponent);
  in_range("dynatemp_exponent", params.dynatemp_exponent, 0, INFINITY);
  finite("dry_multiplier", params.dry_multiplier);
  in_range("dry_multiplier", params.dry_multiplier, 0, INFINITY);
  finite("dry_base", params.dry_base);
  in_range("dry_base", params.dry_base, 0, INFINITY);
  in_range("dry_allowed_length", params.dry_allowed_length, 0, INFINITY);
  in_range("dry_window", params.dry_window, -1, INFINITY);
  in_range("mirostat", params.mirostat, 0, 2);
  finite("mirostat_tau", params.mirostat_tau);
  in_range("mirostat_tau", params.mirostat_tau, 0, INFINITY);
  in_range("mirostat_eta", params.mirostat_eta, 0, 1);
}

}  // namespace

void SamplingParams::validate(int vocabulary) const {
  validate_rare(*this);
  godwit::decode::validate(order);
  for (const auto& word : bad_words) {
    if (word.empty()) fail(ErrorCode::invalid_argument, "sampling", "bad_words holds an empty word");
    for (const int id : word) known_token("bad_words", id, vocabulary);
  }
  if (allowed_ids && allowed_ids->empty())
    fail(ErrorCode::invalid_argument, "sampling", "allowed_token_ids is empty: no token could come");
  for (const int id : allowed_ids.value_or(std::vector<int>())) known_token("allowed_token_ids", id, vocabulary);
  finite("temperature", temperature);
  in_range("temperature", temperature, 0, INFINITY);
  in_range("top_k", top_k, -1, INFINITY);
  in_range("top_p", top_p, 0, 1);
  in_range("min_p", min_p, 0, 1);
  in_range("xtc_probability", xtc_probability, 0, 1);
  in_range("xtc_threshold", xtc_threshold, 0, 1);
  finite("repetition_penalty", repetition_penalty);
  if (repetition_penalty <= 0)
    fail(ErrorCode::invalid_argument, "sampling", "repetition_penalty is {}: it must be above 0",
         repetition_penalty);
  finite("presence_penalty", presence_penalty);
  finite("frequency_penalty", frequency_penalty);
  in_range("penalty_window", penalty_window, -1, INFINITY);
  for (const auto& [id, bias] : logit_bias) {
    known_token("logit_bias", id, vocabulary);
    if (!std::isfinite(bias))
      fail(ErrorCode::invalid_argument, "sampling", "logit_bias of token {} is {}, not a finite number", id,
           bias);
  }
}

}  // namespace godwit::decode
