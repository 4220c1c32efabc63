// What native primitives run with: the kernels of one level, the form of activations, the threads, and memory
// that is used again from step to step. One per opened model, on the engine thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/thread_pool.h"
#include "kernels/kernel_table.h"

namespace godwit::ops {

// Memory for one primitive at a time. After the first step of a size nothing is allocated any more.
class Scratch {
 public:
  // n uninitialised elements on a cache line, valid until reset().
  template <class T>
  std::span<T> take(std::int64_t n) {
    return {reinterpret_cast<T*>(bytes(static_cast<std::size_t>(n) * sizeof(T))),
            static_cast<std::size_t>(n)};
  }
  void reset();
  std::size_t held_bytes() const;

 private:
  std::byte* bytes(std::size_t wanted);

  std::vector<AlignedBuffer> chunks_;
  std::size_t used_ = 0;  // of the last chunk
};

struct NativeRuntime {
  // Throws Error{unsupported} for a level that cannot run here, Error{invalid_argument} for no threads.
  NativeRuntime(kernels::Level level, int threads,
                kernels::ActivationForm activations = kernels::ActivationForm::int8);

  const kernels::KernelTable& kernels;
  const kernels::ActivationForm activations;  // that products with quantized weights read
  ThreadPool pool;
  Scratch scratch;
  std::int64_t weight_bytes = 0;  // of packed matrices that products have read so far

  // Calls fn(begin, end) over pieces of [0, count) that cover it once, on the pool when there is enough to
  // share.
  template <class Fn>
  void share(std::int64_t count, Fn&& fn) {
    const std::int64_t pieces = count < 2 ? 1 : std::min<std::int64_t>(count, 4 * pool.threads());
    if (pieces == 1 || pool.threads() == 1) return fn(std::int64_t{0}, count);
    pool.run(static_cast<int>(pieces),
             [&](int piece) { fn(count * piece / pieces, count * (piece + 1) / pieces); });
  }
};

}  // namespace godwit::ops
