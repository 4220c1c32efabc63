// From the hidden states of a text to one vector.
#pragma once

#include <filesystem>
#include <vector>

#include "base/mx.h"
#include "checkpoint/config.h"

namespace godwit::models {

enum class Pooling { mean, first, last, max };

struct PoolingOptions {
  Pooling pooling = Pooling::mean;
  bool normalize = true;  // to length 1
  int max_tokens = 0;     // longer texts are cut; 0: as many as the graph takes
  bool operator==(const PoolingOptions&) const = default;
};

// What a folder of sentence-transformers says: modules.json, the config of its Pooling module and
// sentence_bert_config.json. A folder without modules.json is pooled by the mean and normalised. Error{unsupported}
// naming a module or a way of pooling that is not here.
PoolingOptions read_pooling(const std::filesystem::path& folder);
// Whether a folder says that it is there to be pooled.
bool has_pooling(const std::filesystem::path& folder);

// What a GGUF file says by the "pooling" of its config: mean or cls; the mean where it says nothing. The
// format has no key for the length of a vector, so it is normalised, as the folder without modules.json and
// llama.cpp's own programs do.
PoolingOptions gguf_pooling(const checkpoint::Config& config);

// hidden [tokens, hidden] -> [hidden] f32. Sums run in f32. A vector of zeros stays what it is.
mx::array pooled(const mx::array& hidden, const PoolingOptions& options);

}  // namespace godwit::models
