#include "ops/packed_matrix.h"

#include <mutex>

#include <gtest/gtest.h>

namespace godwit::ops {
namespace {

// What the loader gives back to the system while a matrix is packed.
TEST(PackedMatrix, TellsOfEveryRowOnceWhenItIsPacked) {
  ThreadPool pool(2);
  for (const std::int64_t rows : {1, 16, 40, 3000}) {
    const kernels::PackedShape shape{kernels::packed_dense(kernels::ScaleType::f16), rows, 32};
    const std::vector<std::byte> numbers(static_cast<std::size_t>(rows) * 64);
    std::vector<int> told(static_cast<std::size_t>(rows));
    std::mutex mutex;
    int calls = 0;
    const PackedMatrix matrix(shape, numbers, pool, [&](std::int64_t begin, std::int64_t end) {
      const std::lock_guard lock(mutex);
      ++calls;
      for (std::int64_t row = begin; row < end; ++row) ++told.at(static_cast<std::size_t>(row));
    });
    EXPECT_EQ(told, std::vector<int>(told.size(), 1)) << rows << " rows";
    EXPECT_EQ(calls, std::min<std::int64_t>(64, (rows + 15) / 16)) << "piece by piece, not at the end";
  }
}

}  // namespace
}  // namespace godwit::ops
