// A random GGUF file of a hybrid model: gated delta layers between gated attention, each with experts.
#pragma once

#include <filesystem>

namespace godwit::one_answer {

// qwen35moe, four layers of which the second and the fourth attend, heads of 64 elements that turn by a quarter, two value
// heads a key head, tiled; four experts of which two are chosen, and a shared one. Matrices are Q8_0, a router and the
// gates of the recurrence F32.
void write_hybrid_model(const std::filesystem::path& file);

}  // namespace godwit::one_answer
