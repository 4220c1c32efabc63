// The engine behind the seams of serve: a Generator over decode::Engine, and the plain description of its
// model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "decode/engine.h"
#include "serve/generator.h"
#include "serve/served_model.h"

namespace godwit::serve {

class EngineGenerator final : public Generator {
 public:
  explicit EngineGenerator(decode::Engine& engine) : engine_(engine) {}
  std::unique_ptr<TokenSource> submit(decode::GenerationRequest request) override;
  std::vector<float> logits(const std::vector<int>& tokens) override;
  std::optional<decode::EngineStats> stats() const override { return engine_.stats(); }
  std::optional<std::uint64_t> forget_prompts(bool disk_too) override {
    return engine_.forget_prompts(disk_too);
  }

 private:
  decode::Engine& engine_;
};

// Valid as long as the engine. Sampling defaults come from the folder's generation_config.json. An id with a
// slash gets its last part as one more alias, since some clients refuse slashes in names.
ServedModel describe(const decode::Engine& engine, std::vector<std::string> aliases, std::int64_t created);

// temperature, top_p, top_k, min_p and repetition_penalty of a generation_config.json over the built-in
// defaults.
decode::SamplingParams sampling_defaults(const Json& generation_config, std::string_view origin);

}  // namespace godwit::serve
