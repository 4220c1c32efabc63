// What an engine must be able to do before a checkpoint can be opened: plain names in a set.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "models/execution.h"

namespace godwit::models {

// "safetensors", "gguf", "streamed"; "autoregressive", "diffusion", "encoder-decoder", "encoder";
// "llama-graph"; "generated-graph", "recurrent-state", ...
using CapabilitySet = std::set<std::string, std::less<>>;

// Layers that remember a state without a token axis.
inline constexpr const char* kRecurrentState = "recurrent-state";

// The least that an execution needs: its loader, its loop, its graph, and generated-graph for a generated
// one.
CapabilitySet capabilities_of(const Execution& execution);

// Those of `wanted` that are not in `there`.
CapabilitySet missing_of(const CapabilitySet& wanted, const CapabilitySet& there);

}  // namespace godwit::models
