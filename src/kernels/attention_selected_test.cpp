// Queries that select positions: of what they may see they see what they name.
#include "kernels/attention_test_support.h"

namespace godwit::kernels {
namespace {

const Codec kCodecs[] = {{"f32", {}, {}},
                         {"bf16", {KvForm::bf16}, {KvForm::bf16}},
                         {"affine", {KvForm::affine, 8, 64}, {KvForm::affine, 4, 32}}};
// Keys and values of their own, and the latents of a wide head as both.
const TokenShape kShapes[] = {{2, 64, 64, 300}, {1, 192, 128, 300, true}};
constexpr std::int64_t kHeads = 6;

// Everything, nothing, one position, every second one, a run, a few, and half of them, over causal queries
// and windows.
Queries selecting(const TokenShape& shape, std::uint32_t seed) {
  std::vector<Interval> intervals;
  for (std::int64_t i = 0; i < 21; i++)
    intervals.push_back({i % 4 == 3 ? 70 + i : 0, shape.positions - 20 + i});
  Queries queries = queries_of(shape, kHeads, intervals);
  queries.blocks = (shape.positions + 63) / 64;
  Numbers numbers(seed);
  for (int i = 0; i < 21; i++)
    for (std::int64_t b = 0; b < queries.blocks; b++) {
      std::uint64_t few = 0, half = 0;
      for (int n = 0; n < 4; n++) few |= std::uint64_t{1} << numbers.integer(0, 63);
      for (int n = 0; n < 64; n++) half |= static_cast<std::uint64_t>(numbers.integer(0, 1)) << n;
      const std::uint64_t forms[] = {~std::uint64_t{0},      0,   b == 2 ? std::uint64_t{1} << 5 : 0,
                                     0x5555555555555555ull, 0x0000'00ff'ffff'0000ull,
                                     b % 2 == 0 ? few : 0,   half};
      queries.words.push_back(forms[i % 7]);
    }
  return queries;
}

TEST(AttentionSelected, every_level_gives_the_bits_of_the_scalar_body) {
  for (const Codec& codec : kCodecs)
    for (const TokenShape& shape : kShapes) {
      if (shape.keys_as_values && codec.keys.form == KvForm::affine) continue;
      Tokens tokens(shape, codec, 21);
      tokens.store(300);
      Queries queries = selecting(shape, 22);
      if (codec.keys.form == KvForm::bf16) queries.sinks = {0.3f, -2.0f, 0.0f, 5.0f, 1.0f, -0.5f};
      if (codec.keys.form == KvForm::affine) queries.soft_cap = 3.0f;
      const Buffer<float> want = attend(Level::scalar, tokens, queries);
      for (const Level level : runnable_levels())
        ASSERT_TRUE(same_bits(attend(level, tokens, queries), want))
            << codec.name << ' ' << level_name(level);
    }
}

TEST(AttentionSelected, is_close_to_softmax_in_double_over_what_is_named) {
  for (const TokenShape& shape : kShapes) {
    Tokens tokens(shape, kCodecs[0], 23);
    tokens.store(300);
    const Queries queries = selecting(shape, 24);
    double largest = 0;
    const std::vector<double> want = in_double(tokens.decoded(Level::scalar), queries, &largest);
    const Buffer<float> got = attend(Level::scalar, tokens, queries);
    // Scores are sums of key_dim products below 72 in all, times 0.11; the rest as in
    // attention_planes_test.cpp.
    const double bound = largest * 2 * (static_cast<double>(shape.key_dim + 1) * 8 + 64 + 8 + 12) * kUnit;
    for (std::int64_t i = 0; i < got.size(); i++)
      ASSERT_NEAR(got[i], want[static_cast<std::size_t>(i)], bound) << "element " << i;
  }
}

TEST(AttentionSelected, naming_everything_changes_no_bit) {
  for (const TokenShape& shape : kShapes) {
    Tokens tokens(shape, kCodecs[0], 25);
    tokens.store(300);
    Queries queries = selecting(shape, 26), plain = queries;
    plain.words.clear();
    std::fill(queries.words.begin(), queries.words.end(), ~std::uint64_t{0});
    for (const Level level : runnable_levels())
      ASSERT_TRUE(same_bits(attend(level, tokens, queries), attend(level, tokens, plain)));
  }
}

// What is not named may hold anything.
TEST(AttentionSelected, what_is_not_named_is_not_looked_at) {
  for (const TokenShape& shape : kShapes) {
    Queries queries = selecting(shape, 27);
    for (std::size_t i = 0; i < queries.words.size(); i++)
      queries.words[i] = i % 5 == 1 ? 0 : 0x8001'0f00'4000'0003;
    Tokens clean(shape, kCodecs[0], 28), dirty(shape, kCodecs[0], 28);
    for (std::int64_t p = 0; p < shape.positions; p++) {
      if ((queries.words[static_cast<std::size_t>(p / 64)] >> p % 64 & 1) != 0) continue;
      const std::int64_t k = shape.kv_heads * shape.key_dim, v = shape.kv_heads * shape.value_dim;
      std::fill_n(dirty.k.data() + p * k, k, std::nanf(""));
      std::fill_n(dirty.v.data() + p * v, v, std::nanf(""));
    }
    clean.store(300);
    dirty.store(300);
    for (const Level level : runnable_levels()) {
      const Buffer<float> want = attend(level, clean, queries), got = attend(level, dirty, queries);
      for (std::int64_t i = 0; i < got.size(); i++) ASSERT_TRUE(std::isfinite(got[i]));
      ASSERT_TRUE(same_bits(got, want)) << level_name(level);
    }
  }
}

// Queries, heads, blocks with their parts merged, or the first blocks and then the rest.
TEST(AttentionSelected, any_split_gives_the_same_bits) {
  for (const Level level : runnable_levels())
    for (const TokenShape& shape : kShapes) {
      Tokens tokens(shape, kCodecs[0], 29);
      tokens.store(300);
      Queries queries = selecting(shape, 30);
      queries.sinks = {0.0f, 1.0f, 2.0f, 3.0f, -1.0f, 4.0f};
      const Buffer<float> whole = attend(level, tokens, queries);
      Buffer<float> pieces = room(tokens, queries), merged = room(tokens, queries),
                    resumed = room(tokens, queries);
      const std::int64_t dim = shape.value_dim;
      for (std::int64_t query = 0; query < 21; query += 4)
        for (std::int64_t head = 0; head < kHeads; head += 3) {
          AttentionArgs part = arguments(tokens, queries, pieces);
          part.query_begin = query;
          part.query_end = std::min<std::int64_t>(query + 4, 21);
          part.head_begin = head;
          part.head_end = head + 3;
          kernels_for(level).attention(part);
        }
      EXPECT_TRUE(same_bits(pieces, whole)) << level_name(level);

      Buffer<float> parts(21 * kHeads * 5 * part_elements(dim)), state(21 * kHeads * part_elements(dim));
      for (std::int64_t block = 0; block < 5; block++) {
        AttentionArgs part = arguments(tokens, queries, merged);
        part.parts = parts.data();
        part.parts_blocks = 5;
        part.block_begin = block;
        part.block_end = block + 1;
        kernels_for(level).attention(part);
      }
      const Selection selected{queries.words.data(), queries.blocks};
      kernels_for(level).attention_merge({parts.data(), merged.data(), queries.intervals.data(), 0, 5, kHeads,
                                          dim, 0, 21, 0, kHeads, kHeads * dim, queries.sinks.data(),
                                          selected});
      EXPECT_TRUE(same_bits(merged, whole)) << level_name(level);

      Queries early = queries, late = queries;
      for (std::size_t i = 0; i < 21; i++) early.intervals[i].hi = late.intervals[i].lo = 128;
      AttentionArgs first = arguments(tokens, early, resumed), second = arguments(tokens, late, resumed);
      first.leave = state.data();
      second.resume = state.data();
      kernels_for(level).attention(first);
      kernels_for(level).attention(second);
      EXPECT_TRUE(same_bits(resumed, whole)) << level_name(level);
    }
}

}  // namespace
}  // namespace godwit::kernels
