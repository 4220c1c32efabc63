// What the benches of the program share.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace godwit::cli {

// `values` must not be empty.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Token ids of positions [begin, end) spread over the vocabulary: the arithmetic does not depend on them.
inline std::vector<int> spread_tokens(int begin, int end, int vocabulary) {
  std::vector<int> tokens;
  for (int i = begin; i < end; ++i) tokens.push_back(static_cast<int>(std::int64_t{i} * 7919 % vocabulary));
  return tokens;
}

// The most memory this process has held so far.
inline std::int64_t peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
#if defined(__APPLE__)
  return usage.ru_maxrss;
#else
  return std::int64_t{usage.ru_maxrss} * 1024;
#endif
}

}  // namespace godwit::cli
