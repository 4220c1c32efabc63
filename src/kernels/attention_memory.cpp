#include "kernels/attention_memory.h"

#include "base/aligned_buffer.h"

namespace godwit::kernels {

void* attention_memory(std::int64_t bytes) {
  thread_local AlignedBuffer memory;
  const auto wanted = static_cast<std::size_t>(bytes);
  if (memory.size() < wanted) memory = AlignedBuffer(wanted);
  return memory.data();
}

}  // namespace godwit::kernels
