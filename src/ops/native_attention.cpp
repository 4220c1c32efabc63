#include <algorithm>
#include <utility>

#include "base/error.h"
#include "ops/native_branch.h"
#include "ops/residual.h"

namespace godwit::ops {
namespace {

// A long context of a single query is shared out by blocks instead of heads: each is read by one thread,
// whole.
constexpr std::int64_t kBlocksToShare = 16;
constexpr std::int64_t kQueriesTogether = 16;

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
        intervals_(call.runtime.scratch.take<kernels::Interval>(call.tokens).data()) {}

  // [tokens, heads * head_dim]
  const float* attended() {
    project();
    std::int64_t first = 0;
    for (const KvRow& row : kv_.rows) {
      call_.runtime.share(row.tokens, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) place_token(row, first, i);
      });
      attend_row(row, first);
      first += row.tokens;
    }
    return out_;
  }

 private:
  float* k_of(std::int64_t token) const { return qkv_ + token * stride_ + plan_.heads * plan_.head_dim; }
  float* v_of(std::int64_t token) const { return k_of(token) + plan_.kv_heads * plan_.head_dim; }

  void project() {
    const auto x = normalized_input(call_, plan_.before);
    const Product products[] = {
        {plan_.q, qkv_, stride_}, {plan_.k, k_of(0), stride_}, {plan_.v, v_of(0), stride_}};
    multiply(call_.runtime, x, call_.tokens, products);
  }

  // Norms and rotates token `first + index` of the step, stores it and says what it sees.
  void place_token(const KvRow& row, std::int64_t first, std::int64_t index) {
    const std::int64_t token = first + index, position = row.position + index;
    float* const q = qkv_ + token * stride_;
    if (plan_.q_norm) normalize(call_.runtime, *plan_.q_norm, q, q, plan_.heads);
    if (plan_.k_norm) normalize(call_.runtime, *plan_.k_norm, k_of(token), k_of(token), plan_.kv_heads);
    if (plan_.rope) rotate(q, position);
    kernels::store_kv({.k = k_of(token),
                       .v = v_of(token),
                       .key_blocks = row.keys,
                       .value_blocks = row.values,
                       .type = kv_.type,
                       .position = position,
                       .tokens = 1,
                       .kv_heads = plan_.kv_heads,
                       .head_dim = plan_.head_dim,
                       .k_stride = stride_,
                       .v_stride = stride_});
    const std::int64_t end = position + 1;
    intervals_[token] = {kv_.window > 0 ? std::max<std::int64_t>(0, end - kv_.window) : 0, end};
  }

  // q and k heads lie side by side, so one call turns both.
  void rotate(float* q, std::int64_t position) const {
    const std::int64_t half = plan_.rope->dims / 2;
    float cosines[kernels::kMaxHeadDim / 2], sines[kernels::kMaxHeadDim / 2];
    const auto at = static_cast<std::int32_t>(position);
    kernels::rope_table({&at, plan_.rope->inverse_frequencies.data(), cosines, sines, 1, half});
    call_.runtime.kernels.rope({.x = q,
                                .cosines = cosines,
                                .sines = sines,
                                .tokens = 1,
                                .heads = plan_.heads + plan_.kv_heads,
                                .head_dim = plan_.head_dim,
                                .dims = plan_.rope->dims,
                                .token_stride = stride_});
  }

  kernels::AttentionArgs row_args(const KvRow& row, std::int64_t first) const {
    return {.q = qkv_ + first * stride_,
            .out = out_ + first * plan_.heads * plan_.head_dim,
            .intervals = intervals_ + first,
            .key_blocks = row.keys,
            .value_blocks = row.values,
            .type = kv_.type,
            .heads = plan_.heads,
            .kv_heads = plan_.kv_heads,
            .head_dim = plan_.head_dim,
            .query_begin = 0,
            .query_end = row.tokens,
            .head_begin = 0,
            .head_end = plan_.heads,
            .q_stride = stride_,
            .out_stride = plan_.heads * plan_.head_dim,
            .scale = plan_.scale};
  }

  void attend_row(const KvRow& row, std::int64_t first) {
    const kernels::AttentionArgs args = row_args(row, first);
    const kernels::Interval seen = intervals_[first];
    const std::int64_t begin = seen.lo / kernels::kBlockPositions;
    const std::int64_t end = (seen.hi + kernels::kBlockPositions - 1) / kernels::kBlockPositions;
    if (row.tokens == 1 && end - begin >= kBlocksToShare && call_.runtime.pool.threads() > 1)
      return attend_by_blocks(args, begin, end);
    const std::int64_t group = plan_.heads / plan_.kv_heads;
    const std::int64_t spans = (row.tokens + kQueriesTogether - 1) / kQueriesTogether;
    call_.runtime.share(plan_.kv_heads * spans, [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t piece = from; piece < to; ++piece) {
        kernels::AttentionArgs part = args;
        part.head_begin = piece / spans * group;
        part.head_end = part.head_begin + group;
        part.query_begin = piece % spans * kQueriesTogether;
        part.query_end = std::min(part.query_begin + kQueriesTogether, row.tokens);
        call_.runtime.kernels.attention(part);
      }
    });
  }

  void attend_by_blocks(kernels::AttentionArgs args, std::int64_t begin, std::int64_t end) {
    const std::int64_t size = plan_.heads * (end - begin) * kernels::part_elements(plan_.head_dim);
    args.parts = call_.runtime.scratch.take<float>(size).data();
    args.parts_first = begin;
    args.parts_blocks = end - begin;
    call_.runtime.share(end - begin, [&](std::int64_t from, std::int64_t to) {
      kernels::AttentionArgs part = args;
      part.block_begin = begin + from;
      part.block_end = begin + to;
      call_.runtime.kernels.attention(part);
    });
    call_.runtime.kernels.attention_merge({.parts = args.parts,
                                           .out = args.out,
                                           .intervals = args.intervals,
                                           .parts_first = begin,
                                           .parts_blocks = end - begin,
                                           .heads = plan_.heads,
                                           .head_dim = plan_.head_dim,
                                           .query_begin = 0,
                                           .query_end = 1,
                                           .head_begin = 0,
                                           .head_end = plan_.heads,
                                           .out_stride = args.out_stride});
  }

  const NativeCall& call_;
  const AttentionPlan& plan_;
  const KvLayer& kv_;
  std::int64_t stride_;
  float* qkv_;
  float* out_;
  kernels::Interval* intervals_;
};

class NativeAttention final : public NativePrimitive {
 public:
  NativeAttention(std::shared_ptr<const AttentionPlan> plan, std::shared_ptr<KvLayer> kv)
      : plan_(std::move(plan)), kv_(std::move(kv)) {}
  const char* name() const override { return "NativeAttention"; }

  void run(const NativeCall& call) const override {
    GODWIT_CHECK(kv_->open, "attention of a step that is over");
    GODWIT_CHECK(!kv_->stored, "a layer stored twice in one Step");
    std::int64_t planned = 0;
    for (const KvRow& row : kv_->rows) planned += row.tokens;
    GODWIT_CHECK(planned == call.tokens, "{} tokens, {} were planned", call.tokens, planned);
    AttentionRun run(call, *plan_, *kv_);
    add_branch(call, run.attended(), plan_->o, plan_->after);
    kv_->stored = true;
  }

 private:
  std::shared_ptr<const AttentionPlan> plan_;
  std::shared_ptr<KvLayer> kv_;
};

}  // namespace

mx::array attention_branch(const mx::array& x, std::shared_ptr<const AttentionPlan> plan,
                           std::shared_ptr<KvLayer> kv) {
  const std::int64_t hidden = plan->q.inputs();
  GODWIT_CHECK(x.ndim() == 2 && x.shape(1) == hidden, "{} inputs, rows of {}", hidden, x.shape(-1));
  return native_node(x, hidden, std::make_shared<NativeAttention>(std::move(plan), std::move(kv)));
}

}  // namespace godwit::ops
