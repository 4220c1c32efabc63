#include "ops/gated_delta.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace godwit::ops {
namespace {

constexpr std::int64_t kTokensTogether = 256;  // bounds the scratch; no bit depends on it
constexpr std::int64_t kRowsTogether = 4;      // of the state, what the kernel moves together
constexpr float kUnitEpsilon = 1e-6f;

class GatedDeltaRun {
 public:
  GatedDeltaRun(NativeRuntime& runtime, const GatedDeltaWeights& weights, const DeltaMemory& memory,
                const GatedDeltaSpan& span)
      : runtime_(runtime), weights_(weights), sizes_(weights.sizes), memory_(memory), span_(span) {
    const std::int64_t most = std::min(span.tokens, kTokensTogether);
    qkv_ = runtime.scratch.take<float>(most * sizes_.channels()).data();
    decay_ = runtime.scratch.take<float>(most * sizes_.value_heads).data();
    update_ = runtime.scratch.take<float>(most * sizes_.value_heads).data();
  }

  void run() {
    for (std::int64_t begin = 0; begin < span_.tokens; begin += kTokensTogether) {
      const std::int64_t end = std::min(begin + kTokensTogether, span_.tokens);
      convolve(begin, end);
      gate(begin, end);
      move_state(begin, end);
    }
    keep_tail();
  }

 private:
  // By heads: the convolution of its channels, then its length.
  void convolve(std::int64_t begin, std::int64_t end) {
    runtime_.share(2 * sizes_.key_heads + sizes_.value_heads, [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t head = from; head < to; ++head) convolve_head(head, begin, end);
    });
  }

  void convolve_head(std::int64_t head, std::int64_t begin, std::int64_t end) {
    const bool is_value = head >= 2 * sizes_.key_heads;
    const std::int64_t channel =
        is_value ? 2 * sizes_.key_channels() + (head - 2 * sizes_.key_heads) * sizes_.value_dim
                 : head * sizes_.key_dim;
    runtime_.kernels.short_conv({.x = span_.mixed,
                                 .tail = memory_.tail,
                                 .weight = weights_.convolution.data(),
                                 .y = qkv_,
                                 .channels = sizes_.channels(),
                                 .kernel = sizes_.kernel,
                                 .token_begin = begin,
                                 .token_end = end,
                                 .channel_begin = channel,
                                 .channel_end = channel + (is_value ? sizes_.value_dim : sizes_.key_dim),
                                 .x_stride = sizes_.channels(),
                                 .y_stride = sizes_.channels()});
    if (is_value) return;
    const bool is_query = head < sizes_.key_heads;
    runtime_.kernels.unit_length(
        {.x = qkv_ + channel,
         .rows = end - begin,
         .n = sizes_.key_dim,
         .x_stride = sizes_.channels(),
         .epsilon = kUnitEpsilon,
         .scale = is_query ? 1.0f / std::sqrt(static_cast<float>(sizes_.key_dim)) : 1.0f});
  }

  void gate(std::int64_t begin, std::int64_t end) {
    runtime_.share(end - begin, [&](std::int64_t from, std::int64_t to) {
      const std::int64_t source = (begin + from) * sizes_.value_heads, target = from * sizes_.value_heads;
      runtime_.kernels.delta_gates({.a = span_.decay + source,
                                    .b = span_.update + source,
                                    .a_log = weights_.a_log.data(),
                                    .dt_bias = weights_.dt_bias.data(),
                                    .decay = decay_ + target,
                                    .update = update_ + target,
                                    .tokens = to - from,
                                    .heads = sizes_.value_heads});
    });
  }

  void move_state(std::int64_t begin, std::int64_t end) {
    const std::int64_t rows = sizes_.value_channels();
    runtime_.share((rows + kRowsTogether - 1) / kRowsTogether, [&](std::int64_t from, std::int64_t to) {
      runtime_.kernels.delta_rule({.q = qkv_,
                                   .k = qkv_ + sizes_.key_channels(),
                                   .v = qkv_ + 2 * sizes_.key_channels(),
                                   .decay = decay_,
                                   .update = update_,
                                   .state_in = begin == 0 ? memory_.state : memory_.next_state,
                                   .state_out = memory_.next_state,
                                   .out = span_.out ? span_.out + begin * rows : nullptr,
                                   .tokens = end - begin,
                                   .key_heads = sizes_.key_heads,
                                   .value_heads = sizes_.value_heads,
                                   .key_dim = sizes_.key_dim,
                                   .value_dim = sizes_.value_dim,
                                   .qkv_stride = sizes_.channels(),
                                   .out_stride = rows,
                                   .row_begin = from * kRowsTogether,
                                   .row_end = std::min(to * kRowsTogether, rows),
                                   .has_tiled_values = sizes_.has_tiled_values});
    });
  }

  // The newest kernel - 1 of (tail, then mixed).
  void keep_tail() {
    const std::int64_t kept = sizes_.kernel - 1, channels = sizes_.channels();
    const auto bytes = static_cast<std::size_t>(channels) * sizeof(float);
    for (std::int64_t i = 0; i < kept; ++i) {
      const std::int64_t token = span_.tokens - kept + i;
      float* const place = memory_.next_tail + i * channels;
      if (token >= 0)
        std::memcpy(place, span_.mixed + token * channels, bytes);
      else if (memory_.tail)
        std::memcpy(place, memory_.tail + (kept + token) * channels, bytes);
      else
        std::memset(place, 0, bytes);
    }
  }

  NativeRuntime& runtime_;
  const GatedDeltaWeights& weights_;
  const GatedDeltaSizes& sizes_;
  const DeltaMemory& memory_;
  const GatedDeltaSpan& span_;
  float *qkv_, *decay_, *update_;
};

DeltaInputs copied(std::shared_ptr<const GatedDeltaWeights> weights, const GatedDeltaSpan& span) {
  const GatedDeltaSizes& sizes = weights->sizes;
  const auto copy = [&](const float* x, std::int64_t n) { return std::vector<float>(x, x + span.tokens * n); };
  return {.weights = std::move(weights),
          .mixed = copy(span.mixed, sizes.channels()),
          .decay = copy(span.decay, sizes.value_heads),
          .update = copy(span.update, sizes.value_heads),
          .tokens = span.tokens};
}

void check_planned(const GatedDeltaSizes& sizes, const DeltaLayer& layer, std::int64_t tokens) {
  GODWIT_CHECK(!layer.stored, "a recurrent layer moved twice in one Step");
  const std::int64_t state = sizes.value_channels() * sizes.key_dim, tail = (sizes.kernel - 1) * sizes.channels();
  GODWIT_CHECK(layer.state_size == state && layer.tail_size == tail,
               "memory of {} and {} elements, a recurrence over {} and {}", layer.state_size, layer.tail_size, state,
               tail);
  std::int64_t planned = 0;
  for (const DeltaRow& row : layer.rows) planned += row.tokens;
  GODWIT_CHECK(planned == tokens, "{} tokens, {} were planned", tokens, planned);
}

}  // namespace

void gated_delta_span(NativeRuntime& runtime, const GatedDeltaWeights& weights, const DeltaMemory& memory,
                      const GatedDeltaSpan& span) {
  const GatedDeltaSizes& sizes = weights.sizes;
  GODWIT_CHECK(sizes.kernel >= 1 && sizes.kernel <= kernels::kMaxConvolution, "a convolution of {} inputs",
               sizes.kernel);
  GODWIT_CHECK(sizes.value_heads % sizes.key_heads == 0, "{} value heads over {} key heads",
               sizes.value_heads, sizes.key_heads);
  GatedDeltaRun(runtime, weights, memory, span).run();
}

void gated_delta_rows(NativeRuntime& runtime, std::shared_ptr<const GatedDeltaWeights> weights, DeltaLayer& layer,
                      const GatedDeltaSpan& span) {
  const GatedDeltaSizes& sizes = weights->sizes;
  check_planned(sizes, layer, span.tokens);
  std::int64_t first = 0;
  for (const DeltaRow& row : layer.rows) {
    const GatedDeltaSpan own{.mixed = span.mixed + first * sizes.channels(),
                             .decay = span.decay + first * sizes.value_heads,
                             .update = span.update + first * sizes.value_heads,
                             .out = span.out + first * sizes.value_channels(),
                             .tokens = row.tokens};
    gated_delta_span(runtime, *weights, row.memory, own);
    if (row.kept) *row.kept = copied(weights, own);
    first += row.tokens;
  }
  layer.stored = true;
}

}  // namespace godwit::ops
