// What memory can deliver, measured beside what is compared with it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/thread_pool.h"
#include "kernels/read_bandwidth.h"

namespace godwit::cli {

double seconds_of(auto&& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// 256 MiB that no cache holds.
class PlainRead {
 public:
  PlainRead() : memory_(std::size_t{256} << 20) { std::fill_n(memory_.data(), memory_.size(), std::byte{1}); }

  // Bytes per second of all threads of the pool.
  double rate(ThreadPool& pool) const {
    const std::size_t share = memory_.size() / static_cast<std::size_t>(pool.threads());
    std::vector<std::uint64_t> sums(static_cast<std::size_t>(pool.threads()));
    const double took = seconds_of([&] {
      pool.run(pool.threads(), [&](int part) {
        const auto at = static_cast<std::size_t>(part);
        sums[at] = kernels::read_all(memory_.data() + share * at, share);
      });
    });
    std::uint64_t sum = 0;
    for (const std::uint64_t part : sums) sum += part;
    // The sum is of use to nobody; without this the read could be left out.
    return static_cast<double>(share * sums.size()) / took + (sum == 1 ? 1e-9 : 0.0);
  }

 private:
  AlignedBuffer memory_;
};

}  // namespace godwit::cli
