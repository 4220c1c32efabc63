// Shared by the tests of attention over stored planes: the queries of a call, and what they owe in double.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/kv_test_support.h"

namespace godwit::kernels {

struct Queries {
  std::int64_t heads;
  std::vector<Interval> intervals;
  std::vector<float> q;
  float soft_cap = 0.0f;
  std::vector<float> sinks = {};
  // Bits of each query's blocks, as kernels::Selection has them; empty: everything.
  std::vector<std::uint64_t> words = {};
  std::int64_t blocks = 0;

  bool sees(std::size_t query, std::int64_t position) const {
    if (position < intervals[query].lo || position >= intervals[query].hi) return false;
    if (words.empty()) return true;
    const std::int64_t word = static_cast<std::int64_t>(query) * blocks + position / 64;
    return (words[static_cast<std::size_t>(word)] >> position % 64 & 1) != 0;
  }
};

inline Queries queries_of(const TokenShape& shape, std::int64_t heads, std::vector<Interval> intervals) {
  Buffer<float> q(static_cast<std::int64_t>(intervals.size()) * heads * shape.key_dim);
  Numbers(17).fill(q);
  return {heads, std::move(intervals), {q.data(), q.data() + q.size()}};
}

inline AttentionArgs arguments(const Tokens& tokens, const Queries& queries, Buffer<float>& out) {
  return {.q = queries.q.data(),
          .out = out.data(),
          .intervals = queries.intervals.data(),
          .blocks = tokens.blocks.data(),
          .keys = tokens.keys,
          .values = tokens.values,
          .heads = queries.heads,
          .query_begin = 0,
          .query_end = static_cast<std::int64_t>(queries.intervals.size()),
          .head_begin = 0,
          .head_end = queries.heads,
          .q_stride = queries.heads * tokens.keys.dim,
          .out_stride = queries.heads * tokens.values.dim,
          .scale = 0.11f,
          .soft_cap = queries.soft_cap,
          .sinks = queries.sinks.empty() ? nullptr : queries.sinks.data(),
          .selected = {queries.words.empty() ? nullptr : queries.words.data(), queries.blocks}};
}

inline Buffer<float> room(const Tokens& tokens, const Queries& queries) {
  return Buffer<float>(static_cast<std::int64_t>(queries.intervals.size()) * queries.heads *
                       tokens.values.dim);
}

inline Buffer<float> attend(Level level, const Tokens& tokens, const Queries& queries) {
  Buffer<float> out = room(tokens, queries);
  EXPECT_EQ(kernels_for(level).attention(arguments(tokens, queries, out)), level);
  return out;
}

// Softmax in double over the decoded values.
inline std::vector<double> in_double(const Tokens& dense, const Queries& queries, double* largest) {
  const TokenShape& s = dense.shape;
  std::vector<double> out;
  *largest = 0;
  for (std::size_t i = 0; i < queries.intervals.size(); i++)
    for (std::int64_t head = 0; head < queries.heads; head++) {
      const std::int64_t kv_head = head / (queries.heads / s.kv_heads);
      double total =
          queries.sinks.empty() ? 0.0 : std::exp(double{queries.sinks[static_cast<std::size_t>(head)]});
      std::vector<double> sum(static_cast<std::size_t>(s.value_dim), 0.0);
      for (std::int64_t p = queries.intervals[i].lo; p < queries.intervals[i].hi; p++) {
        if (!queries.sees(i, p)) continue;
        const auto* block = static_cast<const std::byte*>(dense.blocks[static_cast<std::size_t>(p / 64)]);
        const auto* keys = reinterpret_cast<const float*>(block) + kv_head * s.key_dim * 64 + p % 64;
        const auto* values = reinterpret_cast<const float*>(block + dense.values.offset) +
                             (kv_head * 64 + p % 64) * s.value_dim;
        const float* q = queries.q.data() + (static_cast<std::int64_t>(i) * queries.heads + head) * s.key_dim;
        double score = 0;
        for (std::int64_t d = 0; d < s.key_dim; d++) score += double{q[d]} * keys[d * 64];
        score *= double{0.11f};
        if (queries.soft_cap > 0) score = queries.soft_cap * std::tanh(score / queries.soft_cap);
        const double e = std::exp(score);
        total += e;
        for (std::int64_t d = 0; d < s.value_dim; d++) {
          sum[static_cast<std::size_t>(d)] += e * values[d];
          *largest = std::max(*largest, std::abs(double{values[d]}));
        }
      }
      for (const double x : sum) out.push_back(total == 0 ? 0 : x / total);
    }
  return out;
}

}  // namespace godwit::kernels
