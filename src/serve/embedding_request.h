// POST /v1/embeddings, the way in: body -> the texts as tokens.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "serve/model_directory.h"

namespace godwit::serve {

inline constexpr std::size_t kMaxEmbeddingTexts = 2048;
inline constexpr std::size_t kMaxEmbeddingTokens = 300'000;  // of a request

struct EmbeddingRequest {
  std::vector<std::vector<int>> texts = {};  // tokens
  int dimensions = 0;                        // of the vectors that are wanted
  bool is_base64 = false;
  bool normalizes = false;  // beyond what the model does

  int tokens() const;
};

// `input` is a text, an array of texts, or, where the server was told to take them, tokens or an array of such arrays.
// Throws RequestError; a text that is too long is one, too.
EmbeddingRequest parse_embedding_request(const Json& body, const LoadedModel& loaded);

// The texts of Ollama's /api/embed (`input`) and /api/embeddings (`prompt`). `truncate`: true cuts what is too long.
EmbeddingRequest parse_ollama_embedding(const Json& body, const char* field, const LoadedModel& loaded);

// The embedder of a model; RequestError 400 embeddings_not_supported for one that has none.
Embedder& need_embedder(const LoadedModel& loaded);

// The vectors that were asked for, cut and normalised. As Embedder::embed.
std::vector<std::vector<float>> make_embeddings(Embedder& embedder, const EmbeddingRequest& request,
                                                const std::function<void()>& waiting);

}  // namespace godwit::serve
