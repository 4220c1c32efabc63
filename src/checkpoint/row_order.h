// The order of rows that GGUF files of the llama kind change. Private to the weight store.
#pragma once

#include <vector>

#include "checkpoint/tensor_entry.h"

namespace godwit::checkpoint {

// Rows stored in rotation pairs (0, D/2, 1, D/2 + 1, ...) back to halves (0, 1, ..., D - 1), for each of
// entry.permuted_heads. Throws Error{corrupt_file} where the rows are not heads of an even size.
std::vector<int> unpermuted_rows(const TensorEntry& entry, int rows);

}  // namespace godwit::checkpoint
