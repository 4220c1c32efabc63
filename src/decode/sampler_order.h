// The order in which samplers narrow what may be drawn, by the names that other servers use.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace godwit::decode {

// Of one token's choice, behind the bias. What stands in no order is off, whatever its parameters say.
enum class SamplerStage { penalties, dry, top_n_sigma, top_k, typical, top_p, min_p, xtc, temperature };

using SamplerOrder = std::vector<SamplerStage>;

// penalties, dry, top_n_sigma, top_k, typical, top_p, min_p, xtc, temperature.
const SamplerOrder& default_sampler_order();

// "llamacpp" (the default order), "vllm" (temperature in front of min-p, top-k and top-p) or "mlx-lm" (top-p,
// min-p, XTC, top-k, then temperature). Throws Error{invalid_argument} naming the presets.
SamplerOrder sampler_preset(std::string_view name);

// By name ("top_k", "typ_p", "temperature"), spelled as here or as llama.cpp spells them. Throws
// Error{invalid_argument} for an unknown name, one that comes twice, and penalties or DRY behind what
// truncates.
SamplerOrder sampler_order(std::span<const std::string> names);
// By llama.cpp's letters: e d s k y p m x t.
SamplerOrder sampler_order_of_letters(std::string_view letters);
void validate(const SamplerOrder& order);

}  // namespace godwit::decode
