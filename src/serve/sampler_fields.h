// The fields of the rarer samplers, by the names that vLLM, llama.cpp and Ollama give them.
#pragma once

#include "decode/sampling_params.h"
#include "serve/json_fields.h"
#include "serve/served_model.h"

namespace godwit::serve {

inline constexpr std::size_t kMaxBadWords = 256;
inline constexpr std::size_t kMaxBreakers = 64;  // each is looked for in the whole vocabulary

// What is left out stays as it is. Throws RequestError.
void read_sampler_fields(const JsonFields& in, const ServedModel& model, decode::SamplingParams& sampling);

}  // namespace godwit::serve
