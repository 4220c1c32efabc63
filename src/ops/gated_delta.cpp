#include "ops/gated_delta.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"

namespace godwit::ops {
namespace {

constexpr std::int64_t kTokensTogether = 256;  // bounds the scratch; no bit depends on it
constexpr std::int64_t kRowsTogether = 4;      // of the state, what the kernel moves together
constexpr float kUnitEpsilon = 1e-6f;

class GatedDeltaRun {
 public:
  GatedDeltaRun(NativeRuntime& runtime, const GatedDeltaSizes& sizes, const GatedDeltaSpan& span)
      : runtime_(runtime), sizes_(sizes), span_(span) {
    const std::int64_t most = std::min(span.tokens, kTokensTogether);
    qkv_ = runtime.scratch.take<float>(most * sizes.channels()).data();
    decay_ = runtime.scratch.take<float>(most * sizes.value_heads).data();
    update_ = runtime.scratch.take<float>(most * sizes.value_heads).data();
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
                                 .tail = span_.tail,
                                 .weight = span_.conv_weight,
                                 .y = qkv_,
                                 .channels = sizes_.channels(),
                                 .kernel = sizes_.kernel,
                                 .token_begin = begin,
                                 .token_end = end,
                                 .channel_begin = channel,
                                 .channel_end = channel + (is_value ? sizes_.value_dim : sizes_.key_dim),
                                 .x_stride = span_.mixed_stride,
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
                                    .a_log = span_.a_log,
                                    .dt_bias = span_.dt_bias,
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
                                   .state_in = begin == 0 ? span_.state : span_.next_state,
                                   .state_out = span_.next_state,
                                   .out = span_.out ? span_.out + begin * span_.out_stride : nullptr,
                                   .tokens = end - begin,
                                   .key_heads = sizes_.key_heads,
                                   .value_heads = sizes_.value_heads,
                                   .key_dim = sizes_.key_dim,
                                   .value_dim = sizes_.value_dim,
                                   .qkv_stride = sizes_.channels(),
                                   .out_stride = span_.out_stride,
                                   .row_begin = from * kRowsTogether,
                                   .row_end = std::min(to * kRowsTogether, rows)});
    });
  }

  // The newest kernel - 1 of (tail, then mixed).
  void keep_tail() {
    const std::int64_t kept = sizes_.kernel - 1, channels = sizes_.channels();
    const auto bytes = static_cast<std::size_t>(channels) * sizeof(float);
    for (std::int64_t i = 0; i < kept; ++i) {
      const std::int64_t token = span_.tokens - kept + i;
      float* const place = span_.next_tail + i * channels;
      if (token >= 0)
        std::memcpy(place, span_.mixed + token * span_.mixed_stride, bytes);
      else if (span_.tail)
        std::memcpy(place, span_.tail + (kept + token) * channels, bytes);
      else
        std::memset(place, 0, bytes);
    }
  }

  NativeRuntime& runtime_;
  const GatedDeltaSizes& sizes_;
  const GatedDeltaSpan& span_;
  float *qkv_, *decay_, *update_;
};

}  // namespace

void gated_delta_span(NativeRuntime& runtime, const GatedDeltaSizes& sizes, const GatedDeltaSpan& span) {
  GODWIT_CHECK(sizes.kernel >= 1 && sizes.kernel <= kernels::kMaxConvolution, "a convolution of {} inputs",
               sizes.kernel);
  GODWIT_CHECK(sizes.value_heads % sizes.key_heads == 0, "{} value heads over {} key heads",
               sizes.value_heads, sizes.key_heads);
  GatedDeltaRun(runtime, sizes, span).run();
}

}  // namespace godwit::ops
