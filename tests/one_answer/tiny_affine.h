// A random checkpoint in MLX's affine quantization, as mlx-lm saves one: a folder with config.json and
// model.safetensors.
#pragma once

#include <filesystem>

namespace godwit::one_answer {

// llama, two layers with full attention, heads of 64 elements: matrices of 4 bits in groups of 64, the
// embedding, which is the head too, of 8 bits in groups of 128; scales and biases bf16.
void write_affine_model(const std::filesystem::path& folder);

}  // namespace godwit::one_answer
