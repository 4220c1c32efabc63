// Shared by the kernel benches: the read bandwidth that figures are compared with, and medians.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/read_bandwidth.h"

namespace godwit::kernels {

// Wall clock, and processor time of all threads: on a busy machine the second still compares kernels fairly.
struct Seconds {
  double wall = 0, cpu = 0;
  friend Seconds operator-(Seconds a, Seconds b) { return {a.wall - b.wall, a.cpu - b.cpu}; }
};

inline Seconds bench_now() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return {std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(),
          static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec)};
}

inline double median(const std::vector<Seconds>& times, double Seconds::*clock) {
  std::vector<double> values;
  for (const Seconds& time : times) values.push_back(time.*clock);
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

// Seconds that the pool's threads need to read [begin, begin + bytes), an equal share each.
inline Seconds time_of_read(ThreadPool& pool, const std::byte* begin, std::size_t bytes) {
  const Seconds start = bench_now();
  pool.run(pool.threads(), [&](int part) {
    const std::size_t share = bytes / static_cast<std::size_t>(pool.threads());
    benchmark::DoNotOptimize(read_all(begin + share * static_cast<std::size_t>(part), share));
  });
  return bench_now() - start;
}

// GB/s of the kernel and of the plain read, and the share of the one in the other; each from medians of one
// run. The last by wall clock and by processor time.
inline void report_bandwidth(benchmark::State& state, std::size_t bytes, const std::vector<Seconds>& times,
                             const std::vector<Seconds>& reads) {
  state.counters["GB/s"] = static_cast<double>(bytes) / median(times, &Seconds::wall) / 1e9;
  state.counters["read_GB/s"] = static_cast<double>(bytes) / median(reads, &Seconds::wall) / 1e9;
  state.counters["share"] = median(reads, &Seconds::wall) / median(times, &Seconds::wall);
  state.counters["cpu_share"] = median(reads, &Seconds::cpu) / median(times, &Seconds::cpu);
}

}  // namespace godwit::kernels
