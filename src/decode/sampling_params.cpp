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

}  // namespace

void SamplingParams::validate(int vocabulary) const {
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
    if (id < 0 || id >= vocabulary)
      fail(ErrorCode::invalid_argument, "sampling", "logit_bias holds token {}: the vocabulary has {} tokens",
           id, vocabulary);
    if (!std::isfinite(bias))
      fail(ErrorCode::invalid_argument, "sampling", "logit_bias of token {} is {}, not a finite number", id,
           bias);
  }
}

}  // namespace godwit::decode
