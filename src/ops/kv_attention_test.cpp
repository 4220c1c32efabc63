#include "ops/kv_attention.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "kernels/kv_test_support.h"

namespace godwit::ops {
namespace {

using kernels::Buffer;
using kernels::Codec;
using kernels::Interval;
using kernels::KvForm;
using kernels::Level;
using kernels::Numbers;
using kernels::same_bits;
using kernels::Tokens;
using kernels::TokenShape;

constexpr std::int64_t kHeads = 6, kKvHeads = 2, kDim = 64;

const Codec kF32{"f32", {}, {}}, kF16{"f16", {KvForm::f16}, {KvForm::f16}},
    kAffine{"affine", {KvForm::affine, 8, 64}, {KvForm::affine, 4, 32}},
    kTurbo{"turbo", {KvForm::turbo_keys, 8, 32}, {KvForm::turbo_values, 4, 32}};

// A row that holds `stored` tokens and takes `tokens` more; its blocks have room for all.
struct RowCase {
  RowCase(const Codec& codec, std::int64_t stored_count, std::int64_t token_count, std::uint32_t seed)
      : all({kKvHeads, kDim, kDim, stored_count + token_count}, codec, seed),
        stored(stored_count),
        tokens(token_count),
        q(tokens * kHeads * kDim) {
    Numbers(seed + 1000).fill(q);
    constexpr std::int64_t kStride = kKvHeads * kDim;
    kernels::store_kv(
        {all.k.data(), all.v.data(), all.blocks.data(), all.keys, all.values, 0, stored, kStride, kStride});
  }
  KvRow row() const { return {all.blocks.data(), all.keys, all.values, stored, tokens, {}}; }
  const float* k() const { return all.k.data() + stored * kKvHeads * kDim; }
  const float* v() const { return all.v.data() + stored * kKvHeads * kDim; }

  Tokens all;
  std::int64_t stored, tokens;
  Buffer<float> q;
};

// The rows of a step side by side: as three arrays, or fused as the projections leave them.
struct StepCase {
  explicit StepCase(std::vector<RowCase*> step_rows) : rows(std::move(step_rows)) {
    for (const RowCase* row : rows) {
      layer.rows.push_back(row->row());
      tokens += row->tokens;
      append(q, row->q.data(), row->tokens * kHeads * kDim);
      append(k, row->k(), row->tokens * kKvHeads * kDim);
      append(v, row->v(), row->tokens * kKvHeads * kDim);
    }
    out.resize(q.size());
  }
  KvSpan span() {
    return {.q = q.data(),
            .k = k.data(),
            .v = v.data(),
            .out = out.data(),
            .q_stride = kHeads * kDim,
            .k_stride = kKvHeads * kDim,
            .v_stride = kKvHeads * kDim,
            .out_stride = kHeads * kDim,
            .heads = kHeads,
            .scale = 0.125f};
  }
  static void append(std::vector<float>& to, const float* from, std::int64_t n) {
    to.insert(to.end(), from, from + n);
  }

  std::vector<RowCase*> rows;
  KvLayer layer;
  std::int64_t tokens = 0;
  std::vector<float> q, k, v, out;
};

bool equal(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](float x, float y) { return same_bits(x, y); });
}

std::vector<float> attended(const Codec& codec, std::int64_t stored, std::int64_t tokens, int threads,
                            std::int64_t window) {
  NativeRuntime runtime(kernels::best_level(), threads);
  RowCase row(codec, stored, tokens, 3);
  StepCase step({&row});
  step.layer.window = window;
  store_span(runtime, step.layer, step.span());
  attend_span(runtime, step.layer, step.span());
  return step.out;
}

TEST(KvAttention, threads_and_chunks_do_not_change_a_bit) {
  for (const Codec& codec : {kF32, kF16, kAffine, kTurbo})
    for (const std::int64_t window : {0, 50}) {
      const std::vector<float> whole = attended(codec, 0, 200, 1, window);
      ASSERT_TRUE(equal(attended(codec, 0, 200, 3, window), whole)) << codec.name;
      NativeRuntime runtime(kernels::best_level(), 3);
      RowCase row(codec, 0, 200, 3);
      std::vector<float> chunked;
      for (std::int64_t at = 0, chunk = 1; at < 200; at += chunk, chunk = chunk * 2 + 1) {
        StepCase step({&row});
        step.layer.window = window;
        step.layer.rows[0].position = at;
        step.layer.rows[0].tokens = std::min(chunk, 200 - at);
        KvSpan span = step.span();
        span.q += at * span.q_stride;
        span.k += at * span.k_stride;
        span.v += at * span.v_stride;
        store_span(runtime, step.layer, span);
        attend_span(runtime, step.layer, span);
        StepCase::append(chunked, span.out, step.layer.rows[0].tokens * span.out_stride);
      }
      ASSERT_TRUE(equal(chunked, whole)) << codec.name << " window " << window;
    }
}

TEST(KvAttention, one_query_over_a_long_context_is_shared_by_blocks_with_the_same_bits) {
  for (const Codec& codec : {kF16, kAffine, kTurbo})
    for (const std::int64_t window : {0, 1100})
      ASSERT_TRUE(equal(attended(codec, 1300, 1, 3, window), attended(codec, 1300, 1, 1, window)))
          << codec.name;
}

TEST(KvAttention, rows_of_different_codecs_in_one_step_are_each_alone) {
  NativeRuntime runtime(kernels::best_level(), 2);
  std::vector<float> alone;
  const auto make = [] {
    std::vector<std::unique_ptr<RowCase>> rows;
    rows.push_back(std::make_unique<RowCase>(kTurbo, 70, 3, 4));
    rows.push_back(std::make_unique<RowCase>(kF32, 1, 1, 5));
    rows.push_back(std::make_unique<RowCase>(kAffine, 128, 20, 6));
    rows.push_back(std::make_unique<RowCase>(kF16, 0, 2, 7));
    return rows;
  };
  for (const auto& row : make()) {
    StepCase step({row.get()});
    store_span(runtime, step.layer, step.span());
    attend_span(runtime, step.layer, step.span());
    StepCase::append(alone, step.out.data(), static_cast<std::int64_t>(step.out.size()));
  }
  const auto rows = make();
  StepCase step({rows[0].get(), rows[1].get(), rows[2].get(), rows[3].get()});
  store_span(runtime, step.layer, step.span());
  attend_span(runtime, step.layer, step.span());
  EXPECT_TRUE(equal(step.out, alone));
}

TEST(KvAttention, a_fused_row_is_the_same_as_three_arrays) {
  NativeRuntime runtime(kernels::best_level(), 2);
  for (const Codec& codec : {kF32, kTurbo}) {
    RowCase row(codec, 10, 9, 8), other(codec, 10, 9, 8);
    StepCase apart({&row}), fused({&other});
    store_span(runtime, apart.layer, apart.span());
    attend_span(runtime, apart.layer, apart.span());
    constexpr std::int64_t kStride = (kHeads + 2 * kKvHeads) * kDim;
    std::vector<float> qkv;
    for (std::int64_t i = 0; i < 9; ++i) {
      StepCase::append(qkv, fused.q.data() + i * kHeads * kDim, kHeads * kDim);
      StepCase::append(qkv, fused.k.data() + i * kKvHeads * kDim, kKvHeads * kDim);
      StepCase::append(qkv, fused.v.data() + i * kKvHeads * kDim, kKvHeads * kDim);
    }
    KvSpan span = fused.span();
    span.q = qkv.data();
    span.k = qkv.data() + kHeads * kDim;
    span.v = qkv.data() + (kHeads + kKvHeads) * kDim;
    span.q_stride = span.k_stride = span.v_stride = kStride;
    store_span(runtime, fused.layer, span);
    attend_span(runtime, fused.layer, span);
    EXPECT_TRUE(equal(fused.out, apart.out)) << codec.name;
  }
}

// Softmax in double over what the row holds, as attention sees it: values of query i are those with seen(i,
// p).
void expect_softmax(const StepCase& step, const std::function<bool(std::int64_t, std::int64_t)>& seen,
                    double bound) {
  const RowCase& row = *step.rows[0];
  for (std::int64_t i = 0; i < row.tokens; ++i)
    for (std::int64_t head = 0; head < kHeads; ++head) {
      double total = 0, sum[kDim] = {};
      for (std::int64_t p = 0; p < row.stored + row.tokens; ++p) {
        if (!seen(i, p)) continue;
        const std::int64_t at = (p * kKvHeads + head / (kHeads / kKvHeads)) * kDim;
        double score = 0;
        for (std::int64_t d = 0; d < kDim; ++d)
          score +=
              double{step.q[static_cast<std::size_t>((i * kHeads + head) * kDim + d)]} * row.all.k[at + d];
        const double e = std::exp(score * 0.125);
        total += e;
        for (std::int64_t d = 0; d < kDim; ++d) sum[d] += e * row.all.v[at + d];
      }
      for (std::int64_t d = 0; d < kDim; ++d)
        ASSERT_NEAR(step.out[static_cast<std::size_t>((i * kHeads + head) * kDim + d)],
                    total == 0 ? 0 : sum[d] / total, bound)
            << "query " << i << " head " << head;
    }
}

// Values stay below 5 and scores are sums of 64 products below 12 in all, so a score is off by at most 65 *
// 12 / 8 units, twice (above and below the line), and the sums of a block and of at most four blocks add 84.
constexpr double kBound = 5 * 2 * (65 * 1.5 + 84) * kernels::kUnit;

TEST(KvAttention, ends_say_how_far_forward_a_query_sees) {
  NativeRuntime runtime(kernels::best_level(), 2);
  for (const std::int64_t window : {0, 30}) {
    RowCase row(kF32, 70, 40, 9);
    StepCase step({&row});
    step.layer.window = window;
    for (std::int64_t i = 0; i < 40; ++i)
      step.layer.rows[0].ends.push_back(i < 10 ? 71 + i : i < 30 ? 100 : 71 + i);
    store_span(runtime, step.layer, step.span());
    attend_span(runtime, step.layer, step.span());
    const auto& ends = step.layer.rows[0].ends;
    expect_softmax(
        step,
        [&](std::int64_t i, std::int64_t p) {
          return p < ends[static_cast<std::size_t>(i)] && (window == 0 || p >= 71 + i - window);
        },
        kBound);
  }
}

TEST(KvAttention, a_step_that_only_reads_sees_what_is_stored) {
  NativeRuntime runtime(kernels::best_level(), 2);
  for (const std::int64_t window : {0, 30}) {
    RowCase row(kF32, 90, 3, 10);
    StepCase step({&row});
    step.layer.window = window;
    step.layer.reads_only = true;
    KvSpan span = step.span();
    span.k = span.v = nullptr;
    attend_span(runtime, step.layer, span);
    expect_softmax(
        step, [&](std::int64_t, std::int64_t p) { return p < 90 && (window == 0 || p >= 90 - window); },
        kBound);
  }
}

TEST(KvAttention, a_block_sees_the_context_and_itself_and_stores_nothing) {
  NativeRuntime runtime(kernels::best_level(), 2);
  for (const std::int64_t stored : {0, 70, 128})
    for (const std::int64_t window : {0, 20}) {
      RowCase row(kF32, stored, 40, 11);
      StepCase step({&row});
      step.layer.window = window;
      std::vector<Buffer<std::byte>> before;
      for (const auto& block : row.all.storage) {
        before.emplace_back(block.size());
        std::memcpy(before.back().data(), block.data(), static_cast<std::size_t>(block.size()));
      }
      attend_block(runtime, step.layer, step.span());
      for (std::size_t b = 0; b < before.size(); ++b)
        ASSERT_TRUE(kernels::same_bytes(before[b], row.all.storage[b]));
      expect_softmax(
          step,
          [&](std::int64_t i, std::int64_t p) {
            return p >= stored || window == 0 || p >= stored + i + 1 - window;
          },
          kBound);
    }
}

// Behind a full block, the span lies as it would if it were stored as f32.
TEST(KvAttention, a_block_over_dense_context_has_the_bits_of_a_stored_span_that_looks_forward) {
  NativeRuntime runtime(kernels::best_level(), 2);
  RowCase stored(kF32, 128, 80, 12), not_stored(kF32, 128, 80, 12);
  StepCase one({&stored}), two({&not_stored});
  one.layer.rows[0].ends.assign(80, 208);
  const std::vector<float> sinks = {1.0f, 0.0f, -3.0f, 2.0f, 0.5f, 4.0f};
  KvSpan first = one.span(), second = two.span();
  first.sinks = second.sinks = sinks.data();
  first.soft_cap = second.soft_cap = 3.0f;
  store_span(runtime, one.layer, first);
  attend_span(runtime, one.layer, first);
  attend_block(runtime, two.layer, second);
  EXPECT_TRUE(equal(one.out, two.out));
}

// The context's values are turned back with the span's: against attention over f32 copies of what is stored.
TEST(KvAttention, a_block_over_an_encoded_context_sees_it_decoded) {
  NativeRuntime runtime(Level::scalar, 2);
  for (const Codec& codec : {kAffine, kTurbo}) {
    RowCase row(codec, 100, 30, 13);
    StepCase step({&row});
    attend_block(runtime, step.layer, step.span());
    for (std::int64_t p = 0; p < 100; ++p)  // what is stored, as tokens again
      for (std::int64_t head = 0; head < kKvHeads; ++head) {
        Buffer<float> keys(kDim * 64), values(kDim * 64);
        runtime.kernels.decode_kv({row.all.blocks[static_cast<std::size_t>(p / 64)], row.all.keys,
                                   row.all.values, head, p % 64, p % 64 + 1, keys.data(), values.data()});
        float* const value = values.data() + p % 64 * kDim;
        if (codec.values.form == KvForm::turbo_values) runtime.kernels.restore_values({value, 1, kDim, kDim});
        for (std::int64_t d = 0; d < kDim; ++d) {
          row.all.k[(p * kKvHeads + head) * kDim + d] = keys[d * 64 + p % 64];
          row.all.v[(p * kKvHeads + head) * kDim + d] = value[d];
        }
      }
    // Two transforms of 6 stages and a product on top, whose sums stay below 8 times the largest value.
    expect_softmax(
        step, [](std::int64_t, std::int64_t) { return true; }, kBound + 5 * 2 * 7 * 8 * kernels::kUnit);
  }
}

TEST(KvAttention, heads_that_do_not_fit_are_an_error) {
  NativeRuntime runtime(Level::scalar, 1);
  RowCase row(kF32, 1, 1, 14);
  StepCase step({&row});
  KvSpan span = step.span();
  span.heads = 5;
  EXPECT_THROW(attend_span(runtime, step.layer, span), Error);
  step.layer.rows[0].ends = {1, 2};
  EXPECT_THROW(attend_span(runtime, step.layer, step.span()), Error);
}

}  // namespace
}  // namespace godwit::ops
