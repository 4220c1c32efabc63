#include "cache/block.h"

#include <cstring>
#include <new>
#include <utility>

namespace godwit::cache {
namespace {

// Spare memory that a pool keeps: enough for rows that come and go, little beside what rows hold.
constexpr std::size_t kSpareLimit = std::size_t{64} << 20;

// Attention multiplies whole blocks and throws away what no token was written to. What the heap left there read as floats is
// often denormal, and a product with a denormal takes a hundred cycles or more.
AlignedBuffer zeroed(std::size_t bytes) {
  AlignedBuffer memory(bytes);
  std::memset(memory.data(), 0, bytes);
  return memory;
}

}  // namespace

BlockRef BlockPool::take(std::size_t bytes) {
  auto block = std::make_unique<Block>();
  {
    const std::lock_guard lock(mutex_);
    if (takes_to_failure_ > 0 && --takes_to_failure_ == 0) throw std::bad_alloc();
    auto& spare = spare_[bytes];
    if (!spare.empty()) {
      block->memory = std::move(spare.back());
      spare.pop_back();
      spare_bytes_ -= bytes;
    }
  }
  if (block->bytes() != bytes) block->memory = zeroed(bytes);
  // A shared_ptr that fails to form deletes the block through this deleter; only then is nothing counted yet.
  const auto pool = shared_from_this();
  {
    const std::lock_guard lock(mutex_);
    resident_ += bytes;
    ++taken_;
  }
  return BlockRef(block.release(), [pool](Block* used) {
    pool->put_back(std::move(used->memory));
    delete used;
  });
}

void BlockPool::put_back(AlignedBuffer memory) noexcept {
  const std::size_t bytes = memory.size();
  const std::lock_guard lock(mutex_);
  resident_ -= bytes;
  if (spare_bytes_ + bytes > kSpareLimit) return;
  try {
    spare_[bytes].push_back(std::move(memory));
    spare_bytes_ += bytes;
  } catch (const std::bad_alloc&) {  // then the memory simply goes
  }
}

std::size_t BlockPool::resident_bytes() const {
  const std::lock_guard lock(mutex_);
  return resident_;
}

std::size_t BlockPool::taken() const {
  const std::lock_guard lock(mutex_);
  return taken_;
}

void BlockPool::fail_at(int count) {
  const std::lock_guard lock(mutex_);
  takes_to_failure_ = count;
}

}  // namespace godwit::cache
