// Element type ids of GGUF.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "checkpoint/tensor_format.h"

namespace godwit::checkpoint {

// Absent for ids that nothing here can read.
std::optional<TensorFormat> gguf_format(std::uint32_t type_id);

// "IQ2_XS", "Q4_0_4_4 (removed from the format)", "unknown": for messages about ids without a format.
std::string_view gguf_type_name(std::uint32_t type_id);

}  // namespace godwit::checkpoint
