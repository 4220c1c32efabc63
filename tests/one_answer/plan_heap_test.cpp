// A decode step by a plan takes nothing of the heap, but where its row begins a block.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "decode/row_runner.h"
#include "one_answer/tiny_gguf.h"

namespace {

std::atomic<long> taken = 0;

void* take(std::size_t size, std::size_t alignment) {
  ++taken;
  const std::size_t rounded = (size + alignment - 1) / alignment * alignment;
  void* const memory = alignment > alignof(std::max_align_t) ? std::aligned_alloc(alignment, rounded) : std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t size) { return take(size == 0 ? 1 : size, 1); }
void* operator new[](std::size_t size) { return take(size == 0 ? 1 : size, 1); }
void* operator new(std::size_t size, std::align_val_t alignment) { return take(size, static_cast<std::size_t>(alignment)); }
void* operator new[](std::size_t size, std::align_val_t alignment) { return take(size, static_cast<std::size_t>(alignment)); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace godwit::one_answer {
namespace {

// Of 20 steps inside a row's second block.
long taken_by_steps(const models::ModelBundle& model) {
  decode::RowRunner runner(model);
  runner.store(random_tokens(70, 1));
  int token = runner.greedy(5);
  const long before = taken;
  for (int i = 0; i < 20; ++i) token = runner.greedy(token);
  return taken - before;
}

TEST(PlanHeap, AStepTakesNothing) {
  const Folder folder;
  for (const bool slides : {false, true}) {
    write_model(folder / "model.gguf", slides);
    const auto open = [&](models::PlanUse plan) {
      return open_model(folder / "model.gguf", NumericMode::native, {}, plan);
    };
    EXPECT_EQ(taken_by_steps(*open(models::PlanUse::required)), 0) << (slides ? "sliding" : "full");
    EXPECT_GT(taken_by_steps(*open(models::PlanUse::off)), 20 * 10) << "the count would see it";
  }
}

}  // namespace
}  // namespace godwit::one_answer
