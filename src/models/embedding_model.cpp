#include "models/embedding_model.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/mx_error.h"
#include "base/mx_ops.h"
#include "models/bundle_text.h"
#include "models/opening.h"

namespace godwit::models {
namespace {

void check_options(const ModelOptions& options) {
  if (options.mode == NumericMode::native)
    fail(ErrorCode::unsupported, "embed", "{}: encoders run in reference arithmetic only", options.id);
}

text::Tokenizer tokenizer_of(const checkpoint::Checkpoint& checkpoint) {
  std::optional<text::Tokenizer> tokenizer = read_tokenizer(checkpoint);
  if (tokenizer) return std::move(*tokenizer);
  fail(ErrorCode::not_found, "embed", "{}: {}", checkpoint.path().string(),
       checkpoint.is_gguf() ? "the GGUF file carries no vocabulary" : "no tokenizer.json");
}

// Texts are read in small letters where a GGUF file does not say whether (text/gguf_word_pieces.h). Words
// with a capital letter then stand in the vocabulary in vain: the model knows letter case, and was not meant
// to be read so.
void warn_of_lost_case(const checkpoint::Checkpoint& checkpoint, const Log& log) {
  const auto& vocabulary = checkpoint.gguf_tokenizer();
  if (!vocabulary || vocabulary->lowercase) return;
  constexpr std::string_view kWordStart = "\xE2\x96\x81";  // U+2581
  const auto is_capital = [](char c) { return c >= 'A' && c <= 'Z'; };
  const auto is_lost = [&](std::string_view token) {
    return token.size() > kWordStart.size() && token.starts_with(kWordStart) &&
           is_capital(token[kWordStart.size()]);
  };
  const auto found = std::ranges::find_if(vocabulary->tokens, is_lost);
  if (found != vocabulary->tokens.end())
    log.warning(
        "{}: the vocabulary has words with capital letters ('{}'), and the file does not say "
        "tokenizer.ggml.normalizer.lowercase: texts are read in small letters, as llama.cpp does",
        checkpoint.path().string(), (*found).substr(kWordStart.size()));
}

}  // namespace

EmbeddingModel EmbeddingModel::open(const ModelOptions& options, const Log& log) {
  check_options(options);
  const Catalogue catalogue = options.catalogue ? *options.catalogue : Catalogue::builtin();
  const Opening opening = prepare(options.path, catalogue, options.artifact);
  const checkpoint::Checkpoint& checkpoint = opening.checkpoint;
  const checkpoint::Config& config = checkpoint.config();
  need_loop(opening.profile, {Loop::encoder}, config.origin);
  const PoolingOptions pooling =
      checkpoint.is_gguf() ? gguf_pooling(config) : read_pooling(checkpoint.path());
  for (const std::string& warning : config.warnings) log.warning("{}", warning);
  warn_of_lost_case(checkpoint, log);

  EmbeddingModel model(config, tokenizer_of(checkpoint));
  model.pooling_ = pooling;
  translate_mx_errors("embed", [&] {
    const auto weights = checkpoint.weights(opening.rules);
    model.graph_ = opening.family.make_encoder(checkpoint::WeightScope(weights, ""), config);
    weights->audit();
  });
  model.max_tokens_ = model.graph_->max_tokens();
  if (pooling.max_tokens > 0) model.max_tokens_ = std::min(model.max_tokens_, pooling.max_tokens);
  return model;
}

void cut_text(std::vector<int>& tokens, int max_tokens) {
  const int last = tokens.back();
  tokens.resize(static_cast<std::size_t>(max_tokens));
  tokens.back() = last;
}

std::vector<int> EmbeddingModel::encode(std::string_view text) const {
  // Words that spell a control token are text: nobody but the post-processor puts one in.
  std::vector<int> tokens = tokenizer_.encode(text, {.add_special_tokens = true, .parse_special_tokens = false});
  if (tokens.empty())
    fail(ErrorCode::invalid_argument, "embed", "a text of {} bytes gives no token to read", text.size());
  const auto too_large = std::ranges::find_if(tokens, [&](int id) { return id >= config_.vocabulary; });
  if (too_large != tokens.end())
    fail(ErrorCode::corrupt_file, "embed", "{}: the tokenizer gives token {}, the model has {}", config_.origin,
         *too_large, config_.vocabulary);
  return tokens;
}

std::vector<float> EmbeddingModel::embed(const std::vector<int>& tokens) const {
  const int count = static_cast<int>(tokens.size());
  GODWIT_CHECK(count > 0 && count <= max_tokens_, "a text of {} tokens, {} are read", count, max_tokens_);
  std::vector<float> values;
  translate_mx_errors("embed", [&] {
    mx::array vector =
        mx::contiguous(pooled(graph_->hidden(mx::array(tokens.data(), {count}, mx::int32)), pooling_));
    vector.eval();
    values.assign(vector.data<float>(), vector.data<float>() + vector.size());
  });
  return values;
}

EmbeddingModel::Embedding EmbeddingModel::embed(std::string_view text) const {
  std::vector<int> tokens = encode(text);
  Embedding result;
  result.is_cut = static_cast<int>(tokens.size()) > max_tokens_;
  if (result.is_cut) cut_text(tokens, max_tokens_);
  result.tokens = static_cast<int>(tokens.size());
  result.values = embed(tokens);
  return result;
}

}  // namespace godwit::models
