// Attention over planes of every codec: it is attention over the decoded values, bit for bit.
#include "kernels/attention_test_support.h"
#include "kernels/restore_values.h"

namespace godwit::kernels {
namespace {

// Full causal, windows, an empty interval, one that looks ahead.
const std::vector<Interval> kIntervals = {{0, 128}, {0, 129}, {66, 130}, {100, 131},
                                          {40, 40}, {3, 61},  {0, 140}};

TEST(AttentionPlanes, is_attention_over_the_decoded_values_at_every_level) {
  for (const Codec& codec : all_codecs()) {
    const TokenShape shape{2, 128, 128, 140};
    Tokens tokens(shape, codec, 5);
    tokens.store(140);
    Queries queries = queries_of(shape, 6, kIntervals);
    queries.soft_cap = codec.keys.bits == 8 ? 20.0f : 0.0f;
    if (codec.keys.bits == 4) queries.sinks = {0.3f, -2.0f, 0.0f, 5.0f, 1.0f, -0.5f};
    const Buffer<float> want = attend(Level::scalar, tokens.decoded(Level::scalar), queries);
    for (std::int64_t i = 0; i < want.size(); i++) ASSERT_TRUE(std::isfinite(want[i])) << codec.name;
    for (const Level level : runnable_levels()) {
      ASSERT_TRUE(same_bits(attend(level, tokens, queries), want)) << codec.name << ' ' << level_name(level);
      ASSERT_TRUE(same_bits(attend(level, tokens.decoded(level), queries), want)) << codec.name;
    }
  }
}

TEST(AttentionPlanes, values_may_be_the_first_elements_of_the_keys) {
  const Codec codecs[] = {{"f32", {}, {}},
                          {"f16", {KvForm::f16}, {}},
                          {"affine", {KvForm::affine, 4, 64}, {}},
                          {"turbo", {KvForm::turbo_keys, 8, 32}, {}}};
  for (const Codec& codec : codecs)
    for (const TokenShape& shape : {TokenShape{1, 576, 512, 100, true}, TokenShape{2, 64, 64, 70, true}}) {
      Tokens tokens(shape, codec, 6);
      tokens.store(9);
      const Queries queries = queries_of(shape, 4, {{0, 64}, {0, 70}, {5, 66}});
      const Tokens dense = tokens.decoded(Level::scalar);
      for (std::int64_t head = 0; head < shape.kv_heads; head++) {  // the oracle of the tile's turn
        const auto* keys = static_cast<const float*>(dense.blocks[0]) + head * shape.key_dim * 64;
        const auto* values = reinterpret_cast<const float*>(static_cast<const std::byte*>(dense.blocks[0]) +
                                                            dense.values.offset) +
                             head * shape.value_dim * 64;
        for (std::int64_t d = 0; d < shape.value_dim; d++)
          for (std::int64_t slot = 0; slot < 64; slot++)
            ASSERT_EQ(values[slot * shape.value_dim + d], keys[d * 64 + slot]);
      }
      const Buffer<float> want = attend(Level::scalar, dense, queries);
      for (const Level level : runnable_levels())
        ASSERT_TRUE(same_bits(attend(level, tokens, queries), want))
            << codec.name << ' ' << level_name(level);
    }
}

TEST(AttentionPlanes, any_split_of_queries_heads_and_blocks_gives_the_same_bits) {
  const TokenShape shape{2, 64, 64, 400};
  for (const Codec& codec :
       {Codec{"affine", {KvForm::affine, 4, 32}, {KvForm::affine, 4, 32}},
        Codec{"turbo", {KvForm::turbo_keys, 8, 32}, {KvForm::turbo_values, 3, 32}}, Codec{"f32", {}, {}}})
    for (const Level level : runnable_levels()) {
      Tokens tokens(shape, codec, 7);
      tokens.store(400);
      std::vector<Interval> intervals;
      for (std::int64_t i = 0; i < 60; i++) intervals.push_back({i % 5 * 37, 341 + i});
      Queries queries = queries_of(shape, 6, intervals);
      queries.sinks = {0.0f, 1.0f, 2.0f, 3.0f, -1.0f, 4.0f};
      queries.soft_cap = 5.0f;
      const Buffer<float> whole = attend(level, tokens, queries);
      Buffer<float> pieces = room(tokens, queries), merged = room(tokens, queries),
                    resumed = room(tokens, queries);
      for (std::int64_t query = 0; query < 60; query += 7)
        for (std::int64_t head = 0; head < 6; head += 2) {
          AttentionArgs part = arguments(tokens, queries, pieces);
          part.query_begin = query;
          part.query_end = std::min<std::int64_t>(query + 7, 60);
          part.head_begin = head;
          part.head_end = head + 2;
          kernels_for(level).attention(part);
        }
      EXPECT_TRUE(same_bits(pieces, whole)) << codec.name << ' ' << level_name(level);

      Buffer<float> parts(60 * 6 * 7 * part_elements(64)), state(60 * 6 * part_elements(64));
      for (std::int64_t block = 0; block < 7; block += 2) {
        AttentionArgs part = arguments(tokens, queries, merged);
        part.parts = parts.data();
        part.parts_blocks = 7;
        part.block_begin = block;
        part.block_end = block + 2;
        kernels_for(level).attention(part);
      }
      kernels_for(level).attention_merge({parts.data(), merged.data(), intervals.data(), 0, 7, 6, 64, 0, 60,
                                          0, 6, 6 * 64, queries.sinks.data()});
      EXPECT_TRUE(same_bits(merged, whole)) << codec.name << ' ' << level_name(level);

      Queries early = queries, late = queries;
      for (std::size_t i = 0; i < intervals.size(); i++) {
        early.intervals[i].hi = 256;
        late.intervals[i].lo = 256;
      }
      AttentionArgs first = arguments(tokens, early, resumed), second = arguments(tokens, late, resumed);
      first.leave = state.data();
      second.resume = state.data();
      kernels_for(level).attention(first);
      for (std::int64_t i = 0; i < resumed.size(); i++) ASSERT_EQ(resumed[i], 0.0f);
      kernels_for(level).attention(second);
      EXPECT_TRUE(same_bits(resumed, whole)) << codec.name << ' ' << level_name(level);
    }
}

TEST(AttentionPlanes, sinks_and_soft_caps_are_close_to_softmax_in_double) {
  for (const float cap : {0.0f, 1.5f, 30.0f})
    for (const bool has_sinks : {false, true}) {
      const TokenShape shape{2, 96, 32, 140};
      Tokens tokens(shape, {"affine", {KvForm::affine, 6, 32}, {KvForm::affine, 5, 32}}, 8);
      tokens.store(140);
      Queries queries = queries_of(shape, 6, kIntervals);
      queries.soft_cap = cap;
      if (has_sinks) queries.sinks = {-HUGE_VALF, -2.0f, 0.0f, 3.0f, 9.0f, 1.0f};
      double largest = 0;
      const std::vector<double> want = in_double(tokens.decoded(Level::scalar), queries, &largest);
      const Buffer<float> got = attend(Level::scalar, tokens, queries);
      // Scores are sums of 96 products, below 8 in all, times 0.11: at most 97 roundings of 8 units; the cap
      // adds 4e-7 of at most 8. A score's error scales its weight, above and below the line; exp, sums within
      // and across blocks as in attention_test.cpp.
      const double bound = largest * 2 * (97 * 8 * kUnit + 8 * 4e-7 + (64 + 8 + 12) * kUnit);
      for (std::int64_t i = 0; i < got.size(); i++)
        ASSERT_NEAR(got[i], want[static_cast<std::size_t>(i)], bound) << "cap " << cap << " element " << i;
    }
}

// Attention is linear in the values, so turning its output back is attending to values turned back.
TEST(AttentionPlanes, deferred_values_are_eager_values_up_to_rounding) {
  const TokenShape shape{1, 64, 128, 90};
  Tokens tokens(shape, {"turbo", {KvForm::turbo_keys, 8, 32}, {KvForm::turbo_values, 4, 32}}, 9);
  tokens.store(90);
  const Queries queries = queries_of(shape, 2, {{0, 80}, {10, 90}});
  Buffer<float> deferred = attend(Level::scalar, tokens, queries);
  kernels_for(Level::scalar).restore_values({deferred.data(), 4, 128, 128});
  const Tokens eager = tokens.decoded(Level::scalar);
  for (std::size_t b = 0; b < eager.blocks.size(); b++)
    kernels_for(Level::scalar)
        .restore_values(
            {reinterpret_cast<float*>(static_cast<std::byte*>(eager.blocks[b]) + eager.values.offset),
             b == 0 ? 64 : 26, 128, 128});
  double largest = 0;
  const std::vector<double> want = in_double(eager, queries, &largest);
  // As above, and two transforms of 7 stages and a product, whose sums stay below 12 times the largest value.
  const double bound = largest * (2 * (65 * 8 * kUnit + 84 * kUnit) + 2 * 8 * 12 * kUnit);
  for (std::int64_t i = 0; i < deferred.size(); i++)
    ASSERT_NEAR(deferred[i], want[static_cast<std::size_t>(i)], bound) << i;
}

}  // namespace
}  // namespace godwit::kernels
