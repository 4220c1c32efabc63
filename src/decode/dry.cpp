#include "decode/dry.h"

#include <algorithm>

#include "decode/portable_math.h"

namespace godwit::decode {
namespace {

constexpr double kLargestExponent = 88.7228391;  // log of the largest float

// Z-function: for each position the length of the longest common prefix of the text and its part from there
// on.
std::vector<int> prefix_matches(const std::vector<int>& text) {
  const int size = static_cast<int>(text.size());
  std::vector<int> matches(text.size(), 0);
  for (int i = 1, left = 0, right = 0; i < size; ++i) {
    int& match = matches[static_cast<std::size_t>(i)];
    if (i < right) match = std::min(right - i, matches[static_cast<std::size_t>(i - left)]);
    while (i + match < size &&
           text[static_cast<std::size_t>(match)] == text[static_cast<std::size_t>(i + match)])
      ++match;
    if (i + match > right) {
      left = i;
      right = i + match;
    }
  }
  return matches;
}

}  // namespace

Dry::Dry(const SamplingParams& params)
    : multiplier_(params.dry_multiplier),
      base_(params.dry_base),
      allowed_(params.dry_allowed_length),
      window_(params.dry_window),
      breakers_(params.dry_breakers.begin(), params.dry_breakers.end()) {}

std::map<int, double> Dry::penalties() const {
  const auto count =
      window_ < 0 ? tokens_.size() : std::min(tokens_.size(), static_cast<std::size_t>(window_));
  const std::vector<int> newest(tokens_.rbegin(), tokens_.rbegin() + static_cast<std::ptrdiff_t>(count));
  const auto is_breaker = [this](int token) { return breakers_.contains(token); };
  const int longest = static_cast<int>(std::ranges::find_if(newest, is_breaker) - newest.begin());
  std::map<int, int> lengths;
  const std::vector<int> matches = prefix_matches(newest);
  for (std::size_t i = 1; i < newest.size(); ++i) {
    const int length = std::min(matches[i], longest);
    // Newest first: the token behind the run is the one in front of it here. One that is a breaker goes on
    // with nothing.
    const int next = newest[i - 1];
    if (length >= allowed_ && length > 0 && !is_breaker(next))
      lengths[next] = std::max(lengths[next], length);
  }
  const double log_base = base_ > 1 ? portable_log(base_) : 0;
  std::map<int, double> out;
  for (const auto& [token, length] : lengths)
    out[token] = multiplier_ * portable_exp(std::min((length - allowed_) * log_base, kLargestExponent));
  return out;
}

}  // namespace godwit::decode
