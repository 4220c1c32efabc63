// How a checkpoint is run: the axes that its profile and the code behind it must agree on.
#pragma once

#include <string>
#include <string_view>

namespace godwit::models {

enum class Loader { safetensors, gguf, streamed };
enum class Loop {
  autoregressive,
  diffusion,
  encoder_decoder,  // speech
  encoder,          // no generation: embeddings
};
enum class Specialization {
  generic,    // one graph for many families, driven by the config
  dedicated,  // a graph of one family
  generated,  // a plan for one config fingerprint
  artifact,   // tuned for one checkpoint
};

struct Execution {
  Loader loader = Loader::safetensors;
  std::string graph = {};
  Loop loop = Loop::autoregressive;
  Specialization specialization = Specialization::generic;
  std::string implementation = {};  // id in the registry; empty: the one named like the graph

  bool operator==(const Execution&) const = default;
};

// "safetensors", "encoder-decoder", "dedicated", ...
std::string_view name_of(Loader loader);
std::string_view name_of(Loop loop);
std::string_view name_of(Specialization specialization);

}  // namespace godwit::models
