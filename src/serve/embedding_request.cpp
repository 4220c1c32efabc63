#include "serve/embedding_request.h"

#include <algorithm>

#include "models/embedding_model.h"
#include "serve/json_fields.h"
#include "serve/matryoshka.h"
#include "serve/request_error.h"

namespace godwit::serve {
namespace {

class TextReader {
 public:
  TextReader(const LoadedModel& loaded, std::string field, bool cuts)
      : loaded_(loaded), embedder_(need_embedder(loaded)), field_(std::move(field)), cuts_(cuts) {}

  std::vector<std::vector<int>> read(const Json& input) {
    const bool is_list = input.is_array() && !input.empty() && !input[0].is_number();
    if (input.is_array() && input.empty()) bad_field(field_, "is empty");
    if (!is_list) {
      add(input, field_);
      return std::move(texts_);
    }
    if (input.size() > kMaxEmbeddingTexts)
      bad_field(field_, "may hold at most {} texts, got {}", kMaxEmbeddingTexts, input.size());
    for (std::size_t i = 0; i < input.size(); ++i) add(input[i], fmt::format("{}[{}]", field_, i));
    return std::move(texts_);
  }

 private:
  void add(const Json& text, const std::string& param) {
    std::vector<int> tokens = tokens_of(text, param);
    const auto most = static_cast<std::size_t>(embedder_.max_tokens());
    if (tokens.size() > most && !cuts_) refuse_long(tokens.size(), param);
    if (tokens.size() > most) models::cut_text(tokens, embedder_.max_tokens());
    total_ += tokens.size();
    if (total_ > kMaxEmbeddingTokens) bad_field(field_, "may hold at most {} tokens", kMaxEmbeddingTokens);
    texts_.push_back(std::move(tokens));
  }

  std::vector<int> tokens_of(const Json& text, const std::string& param) const {
    if (text.is_string()) {
      const auto& words = text.get_ref<const std::string&>();
      if (words.empty()) bad_field(param, "is empty");
      return embedder_.encode(words);
    }
    if (!text.is_array()) bad_field(param, "must be a text, got {}", shown(text));
    if (text.empty()) bad_field(param, "is empty");
    if (!embedder_.takes_token_ids())
      bad_field(param,
                "holds token ids, and those of another model's vocabulary would mean nothing here: send text "
                "(LangChain: check_embedding_ctx_length=False), or start the server with --embed-accept-token-ids");
    std::vector<int> tokens;
    for (const Json& value : text) {
      const auto id = as_integer(value);
      if (!id || *id < 0 || *id >= loaded_.model.vocabulary)
        bad_field(param, "needs token ids below {}, got {}", loaded_.model.vocabulary, shown(value));
      tokens.push_back(static_cast<int>(*id));
    }
    return tokens;
  }

  [[noreturn]] void refuse_long(std::size_t tokens, const std::string& param) const {
    throw RequestError(
        ErrorCode::context_overflow,
        fmt::format("This model's maximum context length is {} tokens, but the text of '{}' has {} tokens.",
                    embedder_.max_tokens(), param, tokens),
        {.param = param,
         .code = "context_length_exceeded",
         .extra = Json{{"n_prompt_tokens", tokens}, {"n_ctx", embedder_.max_tokens()}}});
  }

  const LoadedModel& loaded_;
  Embedder& embedder_;
  std::string field_;
  bool cuts_;
  std::vector<std::vector<int>> texts_;
  std::size_t total_ = 0;
};

void read_dimensions(const JsonFields& in, const Embedder& embedder, EmbeddingRequest& into) {
  into.dimensions = embedder.dimensions();
  const auto wanted = in.integer("dimensions", 1, 1 << 30);
  if (!wanted || *wanted == embedder.dimensions()) return;
  if (!embedder.allows_dimensions(static_cast<int>(*wanted)))
    bad_field(in.path_of("dimensions"), "must be {}: the model was not made to be cut to {}", embedder.dimensions(),
              *wanted);
  into.dimensions = static_cast<int>(*wanted);
}

void read_normalize(const JsonFields& in, const Embedder& embedder, EmbeddingRequest& into) {
  const bool wanted = in.boolean("normalize").value_or(embedder.is_normalized());
  if (!wanted && embedder.is_normalized())
    unserved_field(in.path_of("normalize"), "a vector of another length than 1 from this model");
  into.normalizes = wanted && !embedder.is_normalized();
}

// What would change the vectors.
void refuse_unserved(const JsonFields& in) {
  if (in.find("instruction")) unserved_field(in.path_of("instruction"), "an instruction; put it in front of the text");
  if (in.find("prompt_name")) unserved_field(in.path_of("prompt_name"), "a named prompt; put it in front of the text");
  if (in.find("truncate_prompt_tokens")) unserved_field(in.path_of("truncate_prompt_tokens"), "cutting a text");
}

const Json& need_input(const JsonFields& in, const char* field) {
  const Json* input = in.find(field);
  if (!input) bad_field(in.path_of(field), "is required");
  return *input;
}

}  // namespace

int EmbeddingRequest::tokens() const {
  std::size_t count = 0;
  for (const auto& text : texts) count += text.size();
  return static_cast<int>(count);
}

Embedder& need_embedder(const LoadedModel& loaded) {
  if (loaded.embedder) return *loaded.embedder;
  throw RequestError(ErrorCode::unsupported,
                     fmt::format("the model '{}' does not support embeddings", loaded.model.id),
                     {.param = "model", .code = "embeddings_not_supported"});
}

EmbeddingRequest parse_embedding_request(const Json& body, const LoadedModel& loaded) {
  const JsonFields in(body);
  const Embedder& embedder = need_embedder(loaded);
  refuse_unserved(in);
  EmbeddingRequest out;
  const std::string format = in.string("encoding_format").value_or("float");
  if (format != "float" && format != "base64")
    bad_field(in.path_of("encoding_format"), "must be float or base64, got {}", shown(Json(format)));
  out.is_base64 = format == "base64";
  read_dimensions(in, embedder, out);
  read_normalize(in, embedder, out);
  out.texts = TextReader(loaded, in.path_of("input"), /*cuts=*/false).read(need_input(in, "input"));
  return out;
}

EmbeddingRequest parse_ollama_embedding(const Json& body, const char* field, const LoadedModel& loaded) {
  const JsonFields in(body);
  const Embedder& embedder = need_embedder(loaded);
  EmbeddingRequest out;
  read_dimensions(in, embedder, out);
  const bool cuts = in.boolean("truncate").value_or(false);
  out.texts = TextReader(loaded, in.path_of(field), cuts).read(need_input(in, field));
  return out;
}

std::vector<std::vector<float>> make_embeddings(Embedder& embedder, const EmbeddingRequest& request,
                                                const std::function<void()>& waiting) {
  std::vector<std::vector<float>> vectors = embedder.embed(request.texts, waiting);
  const auto wanted = static_cast<std::size_t>(request.dimensions);
  for (std::vector<float>& vector : vectors) {
    const bool is_cut = wanted < vector.size();
    if (is_cut) vector.resize(wanted);
    if (request.normalizes || (is_cut && embedder.is_normalized())) normalize(vector);
  }
  return vectors;
}

}  // namespace godwit::serve
