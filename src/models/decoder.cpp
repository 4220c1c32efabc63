#include "models/decoder.h"

#include <utility>

#include "base/error.h"
#include "base/mx_ops.h"
#include "checkpoint/weight_store.h"

namespace godwit::models {
namespace {

using checkpoint::Config;
using checkpoint::WeightScope;

nn::NormOptions over_hidden(nn::NormOptions options, const Config& config) {
  options.dims = config.hidden;
  return options;
}

nn::Linear head_of(const WeightScope& root, const Config& config, const HeadOptions& options,
                   const nn::Embedding& embedding) {
  if (options.tied) return embedding.as_linear();
  return nn::Linear(root / "lm_head", config.hidden, config.vocabulary, options.bias);
}

void check_native(const WeightScope& root, const Decoder::Options& o) {
  const bool is_plain_head =
      o.head.input_divisor == 1.0 && o.head.multiplier == 1.0 && o.head.divisor == 1.0 && o.head.soft_cap == 0.0;
  if (root.store().native() && !(is_plain_head && !o.embedding_norm))
    fail(ErrorCode::unsupported, "decoder", "{}: native mode has no {}", root.store().origin(),
         is_plain_head ? "norm behind the embedding" : "factor or soft cap on the logits");
}

}  // namespace

std::optional<mx::Dtype> activation_dtype(const Config& config) {
  return config.from_gguf ? std::optional(mx::float32) : std::nullopt;
}

ParallelBlock::ParallelBlock(nn::Norm norm, std::unique_ptr<const nn::Mixer> mixer,
                             std::unique_ptr<const nn::FeedForward> feed_forward, Order order)
    : norm_(std::move(norm)), mixer_(std::move(mixer)), feed_forward_(std::move(feed_forward)), order_(order) {
  if (mixer_->is_native()) fail(ErrorCode::unsupported, "decoder", "native mode has no parallel branches");
}

mx::array ParallelBlock::forward(const mx::array& x, const cache::Step& step, cache::LayerState& state) const {
  const mx::array h = norm_(x);
  const mx::array mixed = (*mixer_)(h, step, state);
  return order_ == Order::branches_first ? mixed + (*feed_forward_)(h) + x : x + mixed + (*feed_forward_)(h);
}

Decoder::Decoder(const WeightScope& root, const Config& config, Options options, Blocks blocks, cache::StateNeeds needs)
    : embedding_(root / "model.embed_tokens", config.vocabulary, config.hidden, activation_dtype(config),
                 options.embedding_scale),
      blocks_(std::move(blocks)),
      norm_(root / "model.norm", over_hidden(options.norm, config)),
      head_(head_of(root, config, options.head, embedding_)),
      head_options_(options.head),
      needs_(std::move(needs)),
      warnings_(std::move(options.warnings)) {
  check_native(root, options);
  if (options.embedding_norm)
    embedding_norm_.emplace(root / "model.embed_norm", over_hidden(*options.embedding_norm, config));
  GODWIT_CHECK(blocks_.size() == needs_.size(), "{} blocks, {} needs", blocks_.size(), needs_.size());
  for (cache::LayerNeed& need : needs_) need.element_bytes = embedding_.element_bytes();
}

mx::array Decoder::hidden(const mx::array& tokens, cache::Step& step) const {
  mx::array h = embedding_(tokens);
  if (embedding_norm_) h = (*embedding_norm_)(h);
  for (std::size_t i = 0; i < blocks_.size(); ++i) h = blocks_[i]->forward(h, step, step.layer(static_cast<int>(i)));
  return norm_(h);
}

mx::array Decoder::logits(const mx::array& hidden) const {
  const HeadOptions& o = head_options_;
  const auto same = [](double value, const mx::array& x) { return scalar_like(value, x); };
  mx::array y = head_(o.input_divisor == 1.0 ? hidden : hidden / same(o.input_divisor, hidden));
  if (o.multiplier != 1.0) y = y * same(o.multiplier, y);
  if (o.divisor != 1.0) y = y / same(o.divisor, y);
  if (o.soft_cap != 0.0) y = mx::tanh(y / same(o.soft_cap, y)) * same(o.soft_cap, y);
  return y;
}

cache::StateNeeds decoder_needs(const Config& config, const std::vector<std::optional<int>>& windows) {
  cache::StateNeeds needs(static_cast<std::size_t>(config.layers));
  GODWIT_CHECK(windows.empty() || windows.size() == needs.size(), "{} windows, {} layers", windows.size(),
               needs.size());
  for (std::size_t i = 0; i < needs.size(); ++i) {
    cache::LayerNeed& need = needs[i];
    need.kv_heads = config.kv_heads;
    need.key_dim = need.value_dim = config.head_dim;
    if (windows.empty() || !windows[i]) continue;
    need.window = cache::WindowKind::sliding;
    need.window_size = *windows[i];
  }
  return needs;
}

WeightScope layer_scope(const WeightScope& root, int index) { return root / "model.layers" / index; }

}  // namespace godwit::models
