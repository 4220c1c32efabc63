#include "ops/native_runtime.h"

#include "kernels/select.h"

namespace godwit::ops {
namespace {

constexpr std::size_t kLeastChunk = std::size_t{1} << 16;

}  // namespace

std::byte* Scratch::bytes(std::size_t wanted) {
  const std::size_t rounded = (wanted + 63) / 64 * 64;
  if (chunks_.empty() || used_ + rounded > chunks_.back().size()) {
    chunks_.emplace_back(std::max(rounded, kLeastChunk));
    used_ = 0;
  }
  std::byte* const place = chunks_.back().data() + used_;
  used_ += rounded;
  return place;
}

// Several chunks become one of their size, so that a step of the same kind fits.
void Scratch::reset() {
  used_ = 0;
  if (chunks_.size() < 2) return;
  const std::size_t total = held_bytes();
  chunks_.clear();
  chunks_.emplace_back(total);
}

std::size_t Scratch::held_bytes() const {
  std::size_t total = 0;
  for (const AlignedBuffer& chunk : chunks_) total += chunk.size();
  return total;
}

NativeRuntime::NativeRuntime(kernels::Level level, int threads, kernels::ActivationForm form)
    : kernels(kernels::kernels_for(level)), activations(form), pool(threads) {}

}  // namespace godwit::ops
