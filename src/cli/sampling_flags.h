// The flags that say how tokens are chosen and when the answer ends: shared by generate and chat.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "decode/generation.h"
#include "text/tokenizer.h"

namespace godwit::cli {

struct SamplingFlags {
  decode::SamplingParams params = {.temperature = 0};
  std::optional<std::uint64_t> seed;
  std::vector<std::string> stop;
  std::string samplers;  // a preset, or names between commas; empty: the default order
  int max_tokens = 512;
  bool ignore_eos = false;

  void add_to(CLI::App& verb);
  // Everything but the prompt and what needs a tokenizer.
  decode::GenerationRequest request() const;
  // With that too.
  decode::GenerationRequest request(const text::Tokenizer* tokenizer) const;

 private:
  void add_rare(CLI::App& verb);
};

}  // namespace godwit::cli
