// Shared by the kernel benches: the read bandwidth that figures are compared with, and medians.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/thread_pool.h"

namespace godwit::kernels {

inline double bench_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

inline double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

// Four streams of 16-byte loads with prefetches: no form of plain read was found to be faster.
inline std::uint64_t read_all(const std::byte* begin, std::size_t bytes) {
  using Wide = std::uint64_t __attribute__((vector_size(16)));
  constexpr std::size_t kAhead = 2048;
  const std::size_t quarter = bytes / 256 * 64;
  Wide sums[4] = {};
  for (std::size_t at = 0; at < quarter; at += 64)
    for (std::size_t stream = 0; stream < 4; stream++) {
      const std::byte* line = begin + stream * quarter + at;
      __builtin_prefetch(line + kAhead);
      for (std::size_t k = 0; k < 64; k += 16) {
        Wide value;
        std::memcpy(&value, line + k, 16);
        sums[k / 16] += value;
      }
    }
  const Wide sum = sums[0] + sums[1] + sums[2] + sums[3];
  return sum[0] + sum[1];
}

// Seconds that the pool's threads need to read [begin, begin + bytes), an equal share each.
inline double time_of_read(ThreadPool& pool, const std::byte* begin, std::size_t bytes) {
  const double start = bench_now();
  pool.run(pool.threads(), [&](int part) {
    const std::size_t share = bytes / static_cast<std::size_t>(pool.threads());
    benchmark::DoNotOptimize(read_all(begin + share * static_cast<std::size_t>(part), share));
  });
  return bench_now() - start;
}

// GB/s of the kernel and of the plain read, and the share of the one in the other; each from medians of one
// run.
inline void report_bandwidth(benchmark::State& state, std::size_t bytes, const std::vector<double>& times,
                             const std::vector<double>& reads) {
  state.counters["GB/s"] = static_cast<double>(bytes) / median(times) / 1e9;
  state.counters["read_GB/s"] = static_cast<double>(bytes) / median(reads) / 1e9;
  state.counters["share"] = median(reads) / median(times);
}

}  // namespace godwit::kernels
