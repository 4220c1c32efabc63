// Memory of the calling thread that attention works in when planes have to be decoded. Declared apart from
// its definition so that files built with ISA flags see no container.
#pragma once

#include <cstdint>

namespace godwit::kernels {

// At least `bytes` bytes on a cache line, kept for the thread's next call. Holds anything. Throws
// std::bad_alloc.
void* attention_memory(std::int64_t bytes);

}  // namespace godwit::kernels
