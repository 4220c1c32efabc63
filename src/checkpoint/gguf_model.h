// What a GGUF file says about the model, in the terms of Hugging Face checkpoints: Config, tensor names,
// tokenizer.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/config.h"
#include "checkpoint/gguf.h"
#include "checkpoint/gguf_tokenizer.h"

namespace godwit::checkpoint {

// One row for each readable general.architecture.
struct GgufArchitecture {
  std::string_view name;
  std::string_view model_type;
  bool norms_include_one;  // norms of x * (1 + w) families are stored as 1 + w
  bool rows_are_permuted;  // q and k rows are stored for pairwise rotation
  bool sandwich_norms;     // four norms a block, of which ffn_norm stands before the MLP
};

// Throws Error{unsupported} listing what can be read, Error{corrupt_file} when the key is missing.
const GgufArchitecture& gguf_architecture(const GgufMetadata& metadata);

Config gguf_config(const GgufFile& file);

// The tensors under graph names, with permuted rows marked. Names without a rule stay as they are
// (rope_freqs.weight).
std::vector<TensorEntry> gguf_tensors(const GgufFile& file, const GgufArchitecture& architecture,
                                      const Config& config);

// "blk.3.attn_q.weight" -> "model.layers.3.self_attn.q_proj.weight".
std::string gguf_graph_name(std::string_view name, const GgufArchitecture& architecture);

std::optional<GgufTokenizer> gguf_tokenizer(const GgufMetadata& metadata);

}  // namespace godwit::checkpoint
