#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "ops/composed_branches.h"
#include "ops/kv_attention.h"
#include "ops/kv_layer.h"
#include "ops/native_branch.h"
#include "ops/residual.h"

namespace godwit::ops {
namespace {

// One call of the node: q, k and v of a token side by side in one row.
class AttentionRun {
 public:
  AttentionRun(const NativeCall& call, const AttentionPlan& plan, const KvLayer& kv)
      : call_(call),
        plan_(plan),
        kv_(kv),
        stride_((plan.heads + 2 * plan.kv_heads) * plan.head_dim),
        qkv_(call.runtime.scratch.take<float>(call.tokens * stride_).data()),
        out_(call.runtime.scratch.take<float>(call.tokens * plan.heads * plan.head_dim).data()),
        gated_(plan.is_gated ? call.runtime.scratch.take<float>(call.tokens * gated_stride()).data() : nullptr) {}

  // [tokens, heads * head_dim]
  const float* attended() {
    project();
    const KvSpan span = this->span();
    call_.runtime.share(call_.tokens, [&](std::int64_t begin, std::int64_t end) {
      place_tokens(begin, end);
      store_tokens(kv_, span, begin, end);
    });
    attend_span(call_.runtime, kv_, span);
    if (gated_) gate();
    return out_;
  }

 private:
  std::int64_t gated_stride() const { return 2 * plan_.heads * plan_.head_dim; }
  float* k_of(std::int64_t token) const { return qkv_ + token * stride_ + plan_.heads * plan_.head_dim; }
  float* v_of(std::int64_t token) const { return k_of(token) + plan_.kv_heads * plan_.head_dim; }

  void project() {
    const auto x = normalized_input(call_, plan_.before);
    const Product q = gated_ ? Product{plan_.q, gated_, gated_stride()} : Product{plan_.q, qkv_, stride_};
    const Product products[] = {q, {plan_.k, k_of(0), stride_}, {plan_.v, v_of(0), stride_}};
    multiply(call_.runtime, x, call_.tokens, products);
  }

  // Tokens [begin, end) of the step.
  void place_tokens(std::int64_t begin, std::int64_t end) {
    std::int64_t first = 0;
    for (const KvRow& row : kv_.rows) {
      for (std::int64_t i = std::max(begin, first); i < std::min(end, first + row.tokens); ++i)
        place_token(i, row.position + i - first);
      first += row.tokens;
    }
  }

  void place_token(std::int64_t token, std::int64_t position) {
    float* const q = qkv_ + token * stride_;
    if (gated_)
      for (std::int64_t head = 0; head < plan_.heads; ++head)
        std::copy_n(gated_ + token * gated_stride() + head * 2 * plan_.head_dim, plan_.head_dim,
                    q + head * plan_.head_dim);
    if (plan_.q_norm) normalize(call_.runtime, *plan_.q_norm, q, q, plan_.heads);
    if (plan_.k_norm) normalize(call_.runtime, *plan_.k_norm, k_of(token), k_of(token), plan_.kv_heads);
    if (!plan_.rope) return;
    const std::int64_t half = plan_.rope->dims / 2;
    if (call_.rope.cosines != nullptr)
      return rotate(q, {call_.rope.cosines + token * half, call_.rope.sines + token * half});
    float cosines[kernels::kMaxHeadDim / 2], sines[kernels::kMaxHeadDim / 2];
    const auto at = static_cast<std::int32_t>(position);
    kernels::rope_table({&at, plan_.rope->inverse_frequencies.data(), cosines, sines, 1, half});
    rotate(q, {cosines, sines});
  }

  // q and k heads lie side by side, so one call turns both.
  void rotate(float* q, const RopeTable& table) const {
    call_.runtime.kernels.rope({.x = q,
                                .cosines = table.cosines,
                                .sines = table.sines,
                                .tokens = 1,
                                .heads = plan_.heads + plan_.kv_heads,
                                .head_dim = plan_.head_dim,
                                .dims = plan_.rope->dims,
                                .token_stride = stride_});
  }

  void gate() {
    const std::int64_t dim = plan_.head_dim;
    call_.runtime.share(call_.tokens, [&](std::int64_t begin, std::int64_t end) {
      float* const out = out_ + begin * plan_.heads * dim;
      call_.runtime.kernels.gated({.activation = kernels::Activation::sigmoid,
                                   .gate = gated_ + begin * gated_stride() + dim,
                                   .up = out,
                                   .y = out,
                                   .rows = (end - begin) * plan_.heads,
                                   .n = dim,
                                   .gate_stride = 2 * dim,
                                   .up_stride = dim,
                                   .y_stride = dim});
    });
  }

  KvSpan span() const {
    return {.q = qkv_,
            .k = k_of(0),
            .v = v_of(0),
            .out = out_,
            .q_stride = stride_,
            .k_stride = stride_,
            .v_stride = stride_,
            .out_stride = plan_.heads * plan_.head_dim,
            .heads = plan_.heads,
            .scale = plan_.scale};
  }

  const NativeCall& call_;
  const AttentionPlan& plan_;
  const KvLayer& kv_;
  std::int64_t stride_;
  float* qkv_;
  float* out_;
  float* gated_;  // of each head its query, then its gate; null: no gates
};

class NativeAttention final : public NativePrimitive {
 public:
  NativeAttention(std::shared_ptr<const AttentionPlan> plan, int layer) : plan_(std::move(plan)), layer_(layer) {}
  const char* name() const override { return "NativeAttention"; }
  const void* constants() const override { return plan_.get(); }
  int layer() const override { return layer_; }
  const RopePlan* rope() const override { return plan_->rope ? &*plan_->rope : nullptr; }
  std::string text() const override {
    return fmt::format("{} {} of {} and {} heads of {}, rope {}, {} {} {} {}", name(), layer_, plan_->heads, plan_->kv_heads,
                       plan_->head_dim, plan_->rope ? plan_->rope->dims : 0, text_of(plan_->q), text_of(plan_->k),
                       text_of(plan_->v), text_of(plan_->o));
  }

  void run(const NativeCall& call) const override {
    KvLayer& kv = layer_of(call.layers, call.tokens);
    GODWIT_CHECK(!kv.stored, "a layer stored twice in one Step");
    for (const KvRow& row : kv.rows)
      GODWIT_CHECK(row.keys.heads == plan_->kv_heads && row.keys.dim == plan_->head_dim &&
                       row.values.heads == plan_->kv_heads && row.values.dim == plan_->head_dim,
                   "state of {} heads of {} and {}, attention of {} of {}", row.keys.heads, row.keys.dim,
                   row.values.dim, plan_->kv_heads, plan_->head_dim);
    AttentionRun run(call, *plan_, kv);
    add_branch(call, run.attended(), plan_->o, plan_->after);
    kv.stored = true;
  }
  mx::array composed(const mx::array& x, Constants& constants, const StepLayers& layers) const override {
    return composed_attention(x, *plan_, layer_of(layers, x.shape(0)), constants);
  }

 private:
  KvLayer& layer_of(const StepLayers& layers, std::int64_t tokens) const {
    GODWIT_CHECK(layer_ >= 0 && static_cast<std::size_t>(layer_) < layers.kv.size(), "layer {} of a step of {}", layer_,
                 layers.kv.size());
    KvLayer& kv = layers.kv[static_cast<std::size_t>(layer_)];
    std::int64_t planned = 0;
    for (const KvRow& row : kv.rows) planned += row.tokens;
    GODWIT_CHECK(planned == tokens, "{} tokens, {} were planned", tokens, planned);
    return kv;
  }

  std::shared_ptr<const AttentionPlan> plan_;
  int layer_;
};

}  // namespace

mx::array attention_branch(const mx::array& x, std::shared_ptr<const AttentionPlan> plan, int layer) {
  const std::int64_t hidden = plan->q.inputs();
  GODWIT_CHECK(x.ndim() == 2 && x.shape(1) == hidden, "{} inputs, rows of {}", hidden, x.shape(-1));
  return native_node(x, hidden, std::make_shared<NativeAttention>(std::move(plan), layer));
}

}  // namespace godwit::ops
