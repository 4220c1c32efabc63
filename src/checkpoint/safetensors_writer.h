// Writes a .safetensors file: an 8-byte little-endian header length, a JSON header padded with spaces to a
// multiple of 8, then the tensors' bytes in the order given.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/tensor_format.h"

namespace godwit::checkpoint {

struct TensorToWrite {
  std::string name;
  TensorFormat format = TensorFormat::f32;  // a plain format
  std::vector<std::uint64_t> shape;
  std::span<const std::byte> bytes;  // row-major, little-endian
};

// The file appears whole or not at all (written beside it, then renamed). Throws Error{io} naming the path,
// and Error{internal} when a tensor's bytes do not fit its shape.
void write_safetensors(const std::filesystem::path& path, std::span<const TensorToWrite> tensors);

}  // namespace godwit::checkpoint
