#include "serve/engine_embedder.h"

#include <algorithm>

#include "base/error.h"
#include "base/mx_error.h"
#include "base/mx_ops.h"
#include "decode/row_runner.h"
#include "models/model_bundle.h"
#include "serve/matryoshka.h"

namespace godwit::serve {
namespace {

std::vector<float> pooled_states(const models::ModelBundle& bundle, const std::vector<int>& tokens,
                                 const models::PoolingOptions& pooling) {
  const std::vector<float> states = decode::RowRunner(bundle).hidden(tokens);
  std::vector<float> values;
  translate_mx_errors("embed", [&] {
    const int count = static_cast<int>(tokens.size());
    const mx::array rows(states.data(), {count, static_cast<int>(states.size()) / count}, mx::float32);
    mx::array vector = mx::contiguous(models::pooled(rows, pooling));
    vector.eval();
    values.assign(vector.data<float>(), vector.data<float>() + vector.size());
  });
  return values;
}

}  // namespace

EngineEmbedder::EngineEmbedder(decode::Engine& engine, const models::PoolingOptions& pooling, bool takes_token_ids)
    : engine_(engine), pooling_(pooling), takes_token_ids_(takes_token_ids) {
  if (!engine.model().tokenizer)
    fail(ErrorCode::unsupported, "embed", "{}: the model has no tokenizer, so it cannot read texts",
         engine.model().options.id);
}

int EngineEmbedder::dimensions() const { return engine_.model().config.hidden; }

int EngineEmbedder::max_tokens() const {
  const int context = engine_.model().context_length;
  return pooling_.max_tokens > 0 ? std::min(context, pooling_.max_tokens) : context;
}

bool EngineEmbedder::allows_dimensions(int count) const {
  return count == dimensions() || is_matryoshka(engine_.model().config.raw, count, dimensions());
}

std::vector<int> EngineEmbedder::encode(std::string_view text) const {
  std::vector<int> tokens =
      engine_.model().tokenizer->encode(text, {.add_special_tokens = true, .parse_special_tokens = false});
  if (tokens.empty())
    fail(ErrorCode::invalid_argument, "embed", "a text of {} bytes gives no token to read", text.size());
  return tokens;
}

std::vector<std::vector<float>> EngineEmbedder::embed(const std::vector<std::vector<int>>& texts,
                                                      const std::function<void()>& waiting) {
  std::vector<std::vector<float>> vectors;
  for (const std::vector<int>& tokens : texts) {
    waiting();
    engine_.run([&](const models::ModelBundle& bundle) { vectors.push_back(pooled_states(bundle, tokens, pooling_)); });
  }
  return vectors;
}

std::optional<models::PoolingOptions> decoder_pooling(const std::filesystem::path& model, const std::string& wanted) {
  if (wanted == "none" || (wanted == "auto" && !models::has_pooling(model))) return std::nullopt;
  if (wanted == "auto") return models::read_pooling(model);
  models::PoolingOptions pooling;
  if (wanted == "cls") pooling.pooling = models::Pooling::first;
  if (wanted == "last") pooling.pooling = models::Pooling::last;
  if (wanted == "max") pooling.pooling = models::Pooling::max;
  return pooling;
}

}  // namespace godwit::serve
