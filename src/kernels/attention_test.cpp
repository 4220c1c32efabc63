#include "kernels/attention.h"

#include "kernels/half.h"
#include "kernels/kernel_test_support.h"
#include "kernels/kv_codec.h"

namespace godwit::kernels {
namespace {

struct Shape {
  std::int64_t heads, kv_heads, head_dim, positions;
};

// One row's keys and values in blocks, plus the queries. Slots past `positions` hold NaN: nothing may read
// them.
class Row {
 public:
  Row(Shape shape, KvForm type, std::int64_t query_count, std::uint32_t seed)
      : shape_(shape),
        type_(type),
        k(shape.positions * shape.kv_heads * shape.head_dim),
        v(shape.positions * shape.kv_heads * shape.head_dim),
        q(query_count * shape.heads * shape.head_dim) {
    Numbers numbers(seed);
    numbers.fill(k);
    numbers.fill(v);
    numbers.fill(q);
    keys_ = {.form = type, .heads = shape.kv_heads, .dim = shape.head_dim};
    values_ = keys_;
    values_.offset = plane_bytes(keys_);
    const std::int64_t bytes = values_.offset + plane_bytes(values_);
    for (std::int64_t block = 0; block * kBlockPositions < shape.positions; block++) {
      storage_.emplace_back(bytes);
      std::memset(storage_.back().data(), 0xff, static_cast<std::size_t>(bytes));
      blocks_.push_back(storage_.back().data());
    }
  }
  // Stores everything in chunks of `chunk` tokens.
  void store(std::int64_t chunk) {
    const std::int64_t stride = shape_.kv_heads * shape_.head_dim;
    for (std::int64_t at = 0; at < shape_.positions; at += chunk)
      store_kv({k.data() + at * stride, v.data() + at * stride, blocks_.data(), keys_, values_, at,
                std::min(chunk, shape_.positions - at), stride, stride});
  }
  AttentionArgs args(const std::vector<Interval>& intervals, Buffer<float>& out) const {
    const std::int64_t stride = shape_.heads * shape_.head_dim;
    return {.q = q.data(),
            .out = out.data(),
            .intervals = intervals.data(),
            .blocks = blocks_.data(),
            .keys = keys_,
            .values = values_,
            .heads = shape_.heads,
            .query_begin = 0,
            .query_end = static_cast<std::int64_t>(intervals.size()),
            .head_begin = 0,
            .head_end = shape_.heads,
            .q_stride = stride,
            .out_stride = stride,
            .scale = 1.0f / std::sqrt(static_cast<float>(shape_.head_dim))};
  }
  Buffer<float> attend(Level level, const std::vector<Interval>& intervals) const {
    Buffer<float> out(q.size());
    EXPECT_EQ(kernels_for(level).attention(args(intervals, out)), level);
    return out;
  }
  // What is stored of a value: rounded to the block's form.
  double stored(float x) const {
    if (type_ == KvForm::f16) return half_to_float(float_to_f16(x));
    if (type_ == KvForm::bf16) return bf16_to_float(float_to_bf16(x));
    return x;
  }

 private:
  Shape shape_;
  KvForm type_;
  std::vector<Buffer<std::byte>> storage_;
  std::vector<void*> blocks_;
  KvPlane keys_, values_;

 public:
  Buffer<float> k, v, q;
};

std::vector<Interval> causal(std::int64_t first, std::int64_t count, std::int64_t window) {
  std::vector<Interval> out;
  for (std::int64_t i = first; i < first + count; i++)
    out.push_back({window > 0 ? std::max<std::int64_t>(0, i + 1 - window) : 0, i + 1});
  return out;
}

constexpr Shape kShapes[] = {{1, 1, 16, 1},   {3, 1, 64, 64},  {9, 3, 64, 200}, {14, 2, 64, 65},
                             {4, 4, 80, 130}, {2, 1, 256, 90}, {1, 1, 576, 70}};
constexpr KvForm kTypes[] = {KvForm::f32, KvForm::f16, KvForm::bf16};

TEST(Attention, is_close_to_softmax_in_double) {
  for (const Shape& s : kShapes)
    for (const KvForm type : kTypes) {
      const auto intervals =
          causal(std::max<std::int64_t>(0, s.positions - 2), std::min<std::int64_t>(2, s.positions), 70);
      const auto queries = static_cast<std::int64_t>(intervals.size());
      Row row(s, type, queries, static_cast<std::uint32_t>(s.positions));
      row.store(s.positions);
      const Buffer<float> out = row.attend(Level::scalar, intervals);
      const double scale = 1.0f / std::sqrt(static_cast<float>(s.head_dim));
      for (std::int64_t i = 0; i < queries * s.heads; i++) {
        const Interval seen = intervals[static_cast<std::size_t>(i / s.heads)];
        const std::int64_t kv_head = i % s.heads / (s.heads / s.kv_heads);
        const auto at = [&](std::int64_t p, std::int64_t d) {
          return (p * s.kv_heads + kv_head) * s.head_dim + d;
        };
        double total = 0, largest_value = 0, score_error = 0;
        std::vector<double> sum(static_cast<std::size_t>(s.head_dim), 0.0);
        for (std::int64_t p = seen.lo; p < seen.hi; p++) {
          double score = 0, size = 0;
          for (std::int64_t d = 0; d < s.head_dim; d++) {
            const double term = row.q[i * s.head_dim + d] * row.stored(row.k[at(p, d)]);
            score += term;
            size += std::abs(term);
          }
          score_error = std::max(score_error, size * scale * static_cast<double>(s.head_dim + 1) * kUnit);
          const double e = std::exp(score * scale);
          total += e;
          for (std::int64_t d = 0; d < s.head_dim; d++) {
            sum[static_cast<std::size_t>(d)] += e * row.stored(row.v[at(p, d)]);
            largest_value = std::max(largest_value, std::abs(row.stored(row.v[at(p, d)])));
          }
        }
        // An error of a score scales its weight by as much, above and below the line; exp adds 2 units each
        // time it is used (3 times), sums within a block at most 64 roundings, and each of the 4 blocks two
        // more.
        const double bound = largest_value * 2 * (score_error + (64 + 8 + 12) * kUnit);
        for (std::int64_t d = 0; d < s.head_dim; d++)
          ASSERT_NEAR(out[i * s.head_dim + d], sum[static_cast<std::size_t>(d)] / total, bound)
              << "head_dim " << s.head_dim << " row " << i << " element " << d;
      }
    }
}

TEST(Attention, every_level_gives_the_scalar_bits) {
  for (const Shape& s : kShapes)
    for (const KvForm type : kTypes)
      for (const std::int64_t window : {0, 63}) {
        const std::int64_t queries = std::min<std::int64_t>(3, s.positions);
        Row row(s, type, queries, static_cast<std::uint32_t>(s.positions + window));
        row.store(7);
        const auto intervals = causal(s.positions - queries, queries, window);
        const Buffer<float> want = row.attend(Level::scalar, intervals);
        for (std::int64_t i = 0; i < want.size(); i++) ASSERT_TRUE(std::isfinite(want[i]));
        for (const Level level : runnable_levels())
          ASSERT_TRUE(same_bits(row.attend(level, intervals), want))
              << level_name(level) << " head_dim " << s.head_dim << " window " << window;
      }
}

TEST(Attention, one_query_or_many_any_heads_at_a_time_give_the_same_bits) {
  for (const Level level : runnable_levels())
    for (const Shape& s : {Shape{6, 2, 16, 130}, Shape{7, 1, 16, 70}})
      for (const std::int64_t window : {0, 20}) {
        Row row(s, KvForm::f32, s.positions, 3);
        row.store(s.positions);
        const auto intervals = causal(0, s.positions, window);
        const Buffer<float> whole = row.attend(level, intervals);
        for (const std::int64_t step : {1, 3}) {
          Buffer<float> parts(row.q.size());
          for (std::int64_t query = 0; query < s.positions; query += step)
            for (std::int64_t head = 0; head < s.heads; head += step) {
              AttentionArgs part = row.args(intervals, parts);
              part.query_begin = query;
              part.query_end = std::min(query + step, s.positions);
              part.head_begin = head;
              part.head_end = std::min(head + step, s.heads);
              kernels_for(level).attention(part);
            }
          ASSERT_TRUE(same_bits(parts, whole))
              << level_name(level) << " step " << step << " window " << window;
        }
      }
}

TEST(Attention, blocks_shared_out_and_merged_give_the_bits_of_the_undivided_walk) {
  const Shape s{9, 3, 48, 500};
  for (const Level level : runnable_levels())
    for (const std::int64_t share : {1, 3, 100}) {
      Row row(s, KvForm::f16, 3, 4);
      row.store(500);
      const std::vector<Interval> intervals = {{70, 498}, {130, 499}, {0, 500}};
      const Buffer<float> whole = row.attend(level, intervals);
      Buffer<float> parts(3 * 9 * 8 * part_elements(48)), out(whole.size());
      for (std::int64_t i = 0; i < parts.size(); i++)
        parts[i] = std::nanf("");  // what no block gives is not read
      for (std::int64_t block = 0; block < 8; block += share) {
        AttentionArgs args = row.args(intervals, out);
        args.parts = parts.data();
        args.parts_blocks = 8;
        args.block_begin = block;
        args.block_end = block + share;
        kernels_for(level).attention(args);
      }
      for (std::int64_t i = 0; i < out.size(); i++) ASSERT_EQ(out[i], 0.0f);
      kernels_for(level).attention_merge(
          {parts.data(), out.data(), intervals.data(), 0, 8, 9, 48, 0, 3, 0, 9, 9 * 48});
      EXPECT_TRUE(same_bits(out, whole)) << level_name(level) << " share " << share;
    }
}

TEST(Attention, positions_outside_the_intervals_change_nothing) {
  for (const Level level : runnable_levels()) {
    Row row({3, 1, 32, 200}, KvForm::f32, 4, 8), damaged({3, 1, 32, 200}, KvForm::f32, 4, 8);
    const std::vector<Interval> intervals = {{70, 75}, {66, 140}, {128, 129}, {100, 100}};
    for (std::int64_t i = 0; i < 32 * 200; i++)
      if (i / 32 < 66 || i / 32 >= 140) damaged.k[i] = damaged.v[i] = std::nanf("");
    row.store(200);
    damaged.store(200);
    const Buffer<float> want = row.attend(level, intervals);
    EXPECT_TRUE(same_bits(damaged.attend(level, intervals), want)) << level_name(level);
    for (std::int64_t i = 3 * 3 * 32; i < want.size(); i++)
      EXPECT_TRUE(same_bits(want[i], 0.0f));  // [100, 100)
  }
}

TEST(Attention, scores_far_apart_neither_overflow_nor_vanish) {
  for (const Level level : runnable_levels()) {
    Row row({1, 1, 16, 130}, KvForm::f32, 1, 9);
    for (std::int64_t i = 0; i < row.q.size(); i++) row.q[i] = 100.0f;
    for (std::int64_t p = 0; p < 130; p++)
      for (int d = 0; d < 16; d++) row.k[p * 16 + d] = p == 77 ? 50.0f : -50.0f;
    row.store(130);
    const Buffer<float> out = row.attend(level, {{0, 130}});
    for (int d = 0; d < 16; d++) EXPECT_EQ(out[d], row.v[77 * 16 + d]);  // all other weights are exactly zero
  }
}

TEST(StoreKv, rounds_halves_to_nearest_even_for_every_pattern) {
  for (std::uint32_t half = 0; half < 0x7c00; half++) {
    const float x = half_to_float(static_cast<std::uint16_t>(half));
    const float next = half_to_float(static_cast<std::uint16_t>(half + 1));
    ASSERT_EQ(float_to_f16(x), half);
    ASSERT_EQ(float_to_f16(-x), half | 0x8000u);
    if (half + 1 == 0x7c00) break;
    const float tie = x + (next - x) / 2;  // exact in f32
    ASSERT_EQ(float_to_f16(tie), half % 2 == 0 ? half : half + 1);
    ASSERT_EQ(float_to_f16(std::nextafter(tie, 0.0f)), half);
    ASSERT_EQ(float_to_f16(std::nextafter(tie, 1e9f)), half + 1);
  }
  EXPECT_EQ(float_to_f16(65519.0f), 0x7bff);
  EXPECT_EQ(float_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(float_to_f16(HUGE_VALF), 0x7c00);
  EXPECT_TRUE(std::isnan(half_to_float(float_to_f16(std::nanf("")))));
  EXPECT_EQ(float_to_bf16(1.0f), 0x3f80);
  EXPECT_EQ(float_to_bf16(1.0f + 0x1p-8f), 0x3f80);            // a tie goes to the even pattern
  EXPECT_EQ(float_to_bf16(1.0f + 0x1p-7f + 0x1p-8f), 0x3f82);  // likewise upwards
  EXPECT_EQ(float_to_bf16(3.4e38f), 0x7f80);
  EXPECT_TRUE(std::isnan(bf16_to_float(float_to_bf16(std::nanf("")))));
}

}  // namespace
}  // namespace godwit::kernels
