#include "cache/block.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace godwit::cache {
namespace {

TEST(BlockPool, AFreshBlockHoldsNothingOfWhatTheHeapHeldBefore) {
  constexpr std::size_t kBytes = 4096;
  for (int round = 0; round < 8; ++round) {  // what is freed is what comes next
    AlignedBuffer before(kBytes);
    std::memset(before.data(), 0x01, kBytes);
  }
  const auto pool = std::make_shared<BlockPool>();
  const BlockRef block = pool->take(kBytes);
  EXPECT_TRUE(std::all_of(block->data(), block->data() + kBytes, [](std::byte byte) { return byte == std::byte{0}; }));
}

}  // namespace
}  // namespace godwit::cache
