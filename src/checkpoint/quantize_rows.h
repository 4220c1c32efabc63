// A matrix of numbers as GGUF blocks: what --quantize-on-load does to it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "checkpoint/tensor_entry.h"
#include "kernels/dequant_blocks.h"

namespace godwit::checkpoint {

// The rows in `bytes` (rows of `columns` numbers of entry.format, back to back) in blocks of `format`, which must divide the
// columns. Throws Error{corrupt_file} naming the tensor and the row where a number is not finite or too large.
std::vector<std::byte> quantized_rows(const TensorEntry& entry, std::span<const std::byte> bytes, int rows, int columns,
                                      kernels::BlockFormat format, ThreadPool& pool);

}  // namespace godwit::checkpoint
