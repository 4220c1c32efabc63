// The flags that say how tokens are chosen and when the answer ends: shared by generate and chat.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "decode/generation.h"

namespace godwit::cli {

struct SamplingFlags {
  decode::SamplingParams params = {.temperature = 0};
  std::optional<std::uint64_t> seed;
  std::vector<std::string> stop;
  int max_tokens = 512;
  bool ignore_eos = false;

  void add_to(CLI::App& verb);
  // Everything but the prompt.
  decode::GenerationRequest request() const;
};

}  // namespace godwit::cli
