// What a GGUF file says about the model, in the terms of Hugging Face checkpoints: Config, tensor names,
// tokenizer.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/config.h"
#include "checkpoint/dialect.h"
#include "checkpoint/gguf.h"
#include "checkpoint/gguf_tokenizer.h"

namespace godwit::checkpoint {

// The dialect that general.architecture names. Throws Error{unsupported} listing what can be read,
// Error{corrupt_file} when the key is missing.
Dialects::Gguf gguf_dialect(const GgufMetadata& metadata, const Dialects& dialects);

Config gguf_config(const GgufFile& file, const Dialects& dialects);

// The tensors under graph names, with permuted rows marked. Names without a rule stay as they are
// (rope_freqs.weight).
std::vector<TensorEntry> gguf_tensors(const GgufFile& file, const GgufDialect& dialect, const Config& config);

// "blk.3.attn_q.weight" -> "model.layers.3.self_attn.q_proj.weight".
std::string gguf_graph_name(std::string_view name, const GgufDialect& dialect);

// Takes the lists of tokens and merges out of the metadata: they are the most of it.
std::optional<GgufTokenizer> take_gguf_tokenizer(GgufMetadata& metadata);

}  // namespace godwit::checkpoint
