// POST /v1/embeddings, and Ollama's /api/embed and /api/embeddings.
#include <openssl/evp.h>

#include <bit>
#include <chrono>
#include <cstdint>

#include "serve/embedding_request.h"
#include "serve/endpoints.h"
#include "serve/json_fields.h"
#include "serve/ollama_request.h"

namespace godwit::serve {
namespace {

// The bytes of the numbers, the lowest first.
std::string base64_of(const std::vector<float>& vector) {
  std::vector<unsigned char> bytes;
  bytes.reserve(vector.size() * sizeof(float));
  for (const float value : vector) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<unsigned char>(bits >> shift));
  }
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');  // the function ends it with a zero
  const int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), bytes.data(),
                                     static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(length));
  return text;
}

std::int64_t nanoseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Response embeddings(const Request& request, Context& context) {
  const Json body = parse_body(request.body);
  const auto loaded = context.models.open(model_name(body), request.check_alive);
  const EmbeddingRequest asked = parse_embedding_request(body, *loaded);
  const auto vectors = make_embeddings(*loaded->embedder, asked, request.check_alive);
  Json data = Json::array();
  for (std::size_t i = 0; i < vectors.size(); ++i)
    data.push_back({{"object", "embedding"},
                    {"index", i},
                    {"embedding", asked.is_base64 ? Json(base64_of(vectors[i])) : Json(vectors[i])}});
  return Response::json({{"object", "list"},
                         {"data", std::move(data)},
                         {"model", loaded->model.id},
                         {"usage", {{"prompt_tokens", asked.tokens()}, {"total_tokens", asked.tokens()}}}});
}

Response ollama_embed(const Request& request, Context& context) {
  const auto start = std::chrono::steady_clock::now();
  const Json body = parse_body(request.body);
  const auto loaded = context.models.open(ollama_model_name(body), request.check_alive);
  const std::int64_t loading = nanoseconds_since(start);
  static_cast<void>(read_keep_alive(JsonFields(body)));
  const EmbeddingRequest asked = parse_ollama_embedding(body, "input", *loaded);
  const auto vectors = make_embeddings(*loaded->embedder, asked, request.check_alive);
  return Response::json({{"model", loaded->model.id},
                         {"embeddings", vectors},
                         {"total_duration", nanoseconds_since(start)},
                         {"load_duration", loading},
                         {"prompt_eval_count", asked.tokens()}});
}

Response ollama_embeddings(const Request& request, Context& context) {
  const Json body = parse_body(request.body);
  const auto loaded = context.models.open(ollama_model_name(body), request.check_alive);
  const EmbeddingRequest asked = parse_ollama_embedding(body, "prompt", *loaded);
  return Response::json({{"embedding", make_embeddings(*loaded->embedder, asked, request.check_alive).front()}});
}

}  // namespace godwit::serve
