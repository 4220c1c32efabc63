// How many numbers a model's weights are, from the heads of its files.
#pragma once

#include <cstdint>
#include <span>

#include "checkpoint/quantization.h"
#include "checkpoint/tensor_entry.h"

namespace godwit::checkpoint {

// Elements of all tensors. Of a packed matrix (NAME.weight of 32-bit words beside NAME.scales), those that the packing
// stands for: each scale belongs to one group of columns, whose size `quantization` says. Scales and biases of groups are
// no numbers of the model. A packed matrix of unknown group counts by its words.
std::int64_t parameter_count(std::span<const TensorEntry> tensors, const QuantizationMap& quantization);

}  // namespace godwit::checkpoint
