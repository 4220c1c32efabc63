// Runs an opened model in `reference` mode the way the oracle ran: forwards over one row, and mlx-lm's greedy
// loop.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/model_bundle.h"
#include "oracle/same_bits.h"

namespace godwit::oracle {

// Opens with default options but reference arithmetic and this KV state. Warnings of the opener go to the
// test's output.
std::unique_ptr<models::ModelBundle> open_reference(const std::filesystem::path& model,
                                                    const cache::KvPolicy& kv = {});

// One forward over the next tokens of `row`, a single token by the recorded graph where the model has one:
// [tokens, vocabulary], evaluated and contiguous.
mx::array forward(const models::ModelBundle& model, cache::Row& row, std::span<const int> tokens);

// The logits of successive forwards over a fresh row, one under the other: [sum of spans, vocabulary].
mx::array run_plan(const models::ModelBundle& model, std::span<const int> tokens, std::span<const int> spans);

struct Answer {
  std::vector<int> tokens;
  std::string text;  // the streamed pieces joined; empty for a model without a tokenizer
};

// `count` greedy tokens from the engine's own generation loop; end tokens do not stop it.
Answer greedy(const std::filesystem::path& model, const std::vector<int>& prompt, int count,
              const cache::KvPolicy& kv = {});

}  // namespace godwit::oracle
