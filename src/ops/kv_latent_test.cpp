// Attention over latents: one KV head that all query heads share, whose values are the first elements of its
// keys; and over positions that queries select.
#include <gtest/gtest.h>

#include <set>

#include "kernels/kv_test_support.h"
#include "ops/kv_attention.h"

namespace godwit::ops {
namespace {

using kernels::Buffer;
using kernels::Codec;
using kernels::KvForm;
using kernels::Level;
using kernels::Numbers;
using kernels::Tokens;

struct Shape {
  std::int64_t heads, latent, rotary, tokens;
  std::int64_t key() const { return latent + rotary; }
};

// A row's tokens, and queries for each; the first `stored` are there already.
struct LatentRow {
  LatentRow(const Shape& row_shape, const Codec& codec, std::int64_t stored_count, std::uint32_t seed = 3)
      : shape(row_shape),
        all({1, shape.key(), shape.latent, shape.tokens, true}, codec, seed),
        stored(stored_count),
        q(shape.tokens * shape.heads * shape.key()) {
    Numbers(seed + 1000).fill(q);
    kernels::store_kv(
        {all.k.data(), nullptr, all.blocks.data(), all.keys, all.values, 0, stored, shape.key(), 0});
  }

  // Positions that query i names: a few of what it may see, some that are not there, some twice.
  void select(std::int64_t count, std::uint32_t seed) {
    Numbers numbers(seed);
    selected_count = count;
    for (std::int64_t i = 0; i < shape.tokens; ++i)
      for (std::int64_t n = 0; n < count; ++n)
        selected.push_back(n == 0 ? -1 : numbers.integer(0, static_cast<int>(shape.tokens) + 3));
  }

  // Steps over tokens [from, to) of the row, the answers one after another.
  std::vector<float> step(NativeRuntime& runtime, std::int64_t from, std::int64_t to) {
    KvLayer layer;
    layer.rows.push_back({all.blocks.data(), all.keys, all.values, from, to - from, {}});
    std::vector<float> out(static_cast<std::size_t>((to - from) * shape.heads * shape.latent));
    const KvSpan span{.q = q.data() + from * shape.heads * shape.key(),
                      .k = all.k.data() + from * shape.key(),
                      .v = nullptr,
                      .out = out.data(),
                      .q_stride = shape.heads * shape.key(),
                      .k_stride = shape.key(),
                      .v_stride = 0,
                      .out_stride = shape.heads * shape.latent,
                      .heads = shape.heads,
                      .scale = 0.07f,
                      .selected = selected.empty() ? nullptr : selected.data() + from * selected_count,
                      .selected_count = selected_count};
    store_span(runtime, layer, span);
    attend_span(runtime, layer, span);
    runtime.scratch.reset();
    return out;
  }
  std::vector<float> rest(NativeRuntime& runtime) { return step(runtime, stored, shape.tokens); }

  Shape shape;
  Tokens all;
  std::int64_t stored;
  Buffer<float> q;
  std::vector<std::int32_t> selected;
  std::int64_t selected_count = 0;
};

bool equal(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](float x, float y) { return kernels::same_bits(x, y); });
}

const Codec kF32{"f32", {}, {}}, kF16{"f16", {KvForm::f16}, {}}, kBf16{"bf16", {KvForm::bf16}, {}};

// Softmax in double over [latent | rotary] keys, the latents as values.
std::vector<double> in_double(const LatentRow& row) {
  const Shape& s = row.shape;
  std::vector<double> out;
  for (std::int64_t i = row.stored; i < s.tokens; ++i) {
    std::set<std::int64_t> named;
    for (std::int64_t n = 0; n < row.selected_count; ++n)
      named.insert(row.selected[static_cast<std::size_t>(i * row.selected_count + n)]);
    for (std::int64_t head = 0; head < s.heads; ++head) {
      double total = 0;
      std::vector<double> sum(static_cast<std::size_t>(s.latent), 0.0);
      for (std::int64_t p = 0; p <= i; ++p) {
        if (row.selected_count > 0 && !named.contains(p)) continue;
        double score = 0;
        for (std::int64_t d = 0; d < s.key(); ++d)
          score += double{row.q[(i * s.heads + head) * s.key() + d]} * row.all.k[p * s.key() + d];
        const double e = std::exp(score * double{0.07f});
        total += e;
        for (std::size_t d = 0; d < sum.size(); ++d)
          sum[d] += e * row.all.k[p * s.key() + static_cast<std::int64_t>(d)];
      }
      for (const double x : sum) out.push_back(total == 0 ? 0 : x / total);
    }
  }
  return out;
}

// GLM's sizes. Scores are sums of 576 products below 130 in all, times 0.07: off by at most 577 * 9.1 units,
// twice (above and below the line); values stay below 5, and the sums of a block and of at most two blocks
// add 84.
TEST(KvLatent, is_close_to_softmax_in_double) {
  NativeRuntime runtime(kernels::best_level(), 2);
  for (const std::int64_t count : {0, 40}) {
    LatentRow row({8, 512, 64, 90}, kF32, 70);
    if (count > 0) row.select(count, 31);
    const std::vector<float> got = row.rest(runtime);
    const std::vector<double> want = in_double(row);
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], want[i], 5 * 2 * (577 * 9.1 + 84) * kernels::kUnit) << i;
  }
}

TEST(KvLatent, every_level_gives_the_same_bits) {
  for (const Codec& codec : {kF32, kF16, kBf16})
    for (const std::int64_t count : {0, 30}) {
      std::vector<float> want;
      for (const Level level : kernels::runnable_levels()) {
        NativeRuntime runtime(level, 2);
        LatentRow row({20, 512, 64, 70}, codec, 68);
        if (count > 0) row.select(count, 32);
        const std::vector<float> got = row.rest(runtime);
        if (want.empty()) want = got;
        ASSERT_TRUE(equal(got, want)) << codec.name << ' ' << kernels::level_name(level);
      }
    }
}

TEST(KvLatent, threads_and_chunks_do_not_change_a_bit) {
  for (const Codec& codec : {kF32, kBf16})
    for (const std::int64_t count : {0, 60}) {
      const Shape shape{33, 64, 32, 200};
      NativeRuntime one(kernels::best_level(), 1), three(kernels::best_level(), 3);
      LatentRow whole(shape, codec, 0), shared(shape, codec, 0), chunked(shape, codec, 0);
      for (LatentRow* row : {&whole, &shared, &chunked})
        if (count > 0) row->select(count, 33);
      const std::vector<float> want = whole.rest(one);
      ASSERT_TRUE(equal(shared.rest(three), want)) << codec.name;
      std::vector<float> got;
      for (std::int64_t at = 0, chunk = 1; at < shape.tokens; at += chunk, chunk = chunk * 2 + 1) {
        const std::vector<float> part = chunked.step(three, at, std::min(at + chunk, shape.tokens));
        got.insert(got.end(), part.begin(), part.end());
      }
      ASSERT_TRUE(equal(got, want)) << codec.name;
    }
}

// By heads where there are enough for all threads, else by blocks: with and without a selection that leaves
// some of those out.
TEST(KvLatent, one_query_over_a_long_context_is_shared_out_with_the_same_bits) {
  for (const std::int64_t count : {0, 9, 2000}) {
    const Shape shape{16, 32, 16, 1300};
    std::vector<float> want;
    for (const int threads : {1, 2, 3}) {
      NativeRuntime runtime(kernels::best_level(), threads);
      LatentRow row(shape, kF32, 1299);
      if (count > 0) row.select(count, 34);
      const std::vector<float> got = row.rest(runtime);
      if (want.empty()) want = got;
      ASSERT_TRUE(equal(got, want)) << threads << " threads, " << count << " named";
    }
  }
}

// The span is not stored: its positions are named as those behind the context.
TEST(KvLatent, a_block_is_selected_from_as_if_it_were_stored) {
  NativeRuntime runtime(kernels::best_level(), 2);
  const Shape shape{4, 64, 32, 170};
  LatentRow stored(shape, kF32, 128), beside(shape, kF32, 128);
  KvLayer layer;
  layer.rows.push_back({beside.all.blocks.data(), beside.all.keys, beside.all.values, 128, 42, {}});
  for (LatentRow* row : {&stored, &beside}) row->select(50, 35);
  std::vector<float> blocks(static_cast<std::size_t>(42 * 4 * 64)), spans(blocks.size());
  KvSpan span{.q = beside.q.data() + 128 * 4 * 96,
              .k = beside.all.k.data() + 128 * 96,
              .v = nullptr,
              .out = blocks.data(),
              .q_stride = 4 * 96,
              .k_stride = 96,
              .v_stride = 0,
              .out_stride = 4 * 64,
              .heads = 4,
              .scale = 0.07f,
              .selected = beside.selected.data() + 128 * 50,
              .selected_count = 50};
  attend_block(runtime, layer, span);
  layer.rows[0].blocks = stored.all.blocks.data();
  layer.rows[0].ends.assign(42, 170);
  span.out = spans.data();
  store_span(runtime, layer, span);
  attend_span(runtime, layer, span);
  EXPECT_TRUE(equal(blocks, spans));
}

}  // namespace
}  // namespace godwit::ops
