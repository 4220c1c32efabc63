// The pieces of a gated delta layer: against double, every level against scalar on bits, and the same bits
// whatever the calls cover.
#include "kernels/kernel_test_support.h"

namespace godwit::kernels {
namespace {

const KernelTable& scalar_kernels() { return kernels_for(Level::scalar); }

struct Conv {
  static constexpr std::int64_t kTokens = 7;
  Conv(std::int64_t channel_count, std::int64_t kernel_size, std::uint32_t seed)
      : channels(channel_count),
        kernel(kernel_size),
        x(kTokens * channels, 1),
        tail((kernel - 1) * channels),
        weight(channels * kernel) {
    Numbers numbers(seed);
    numbers.fill(x);
    numbers.fill(tail);
    numbers.fill(weight, 0.5f);
  }
  void run(Level level, Buffer<float>& y, std::int64_t begin, std::int64_t end, bool with_tail = true) const {
    kernels_for(level).short_conv({x.data(), with_tail ? tail.data() : nullptr, weight.data(),
                                   y.data() + begin * channels, channels, kernel, begin, end, 0, channels,
                                   channels, channels});
  }
  double input(std::int64_t token, std::int64_t c, bool with_tail) const {
    if (token >= 0) return x[token * channels + c];
    return with_tail ? tail[(kernel - 1 + token) * channels + c] : 0.0;
  }
  std::int64_t channels, kernel;
  Buffer<float> x, tail, weight;
};

TEST(ShortConv, is_close_to_double_and_equal_at_every_level_and_for_any_cut) {
  for (const std::int64_t channels : {1, 15, 16, 17, 40})
    for (const std::int64_t kernel : {1, 2, 4, 9})
      for (const bool with_tail : {false, true}) {
        const Conv conv(channels, kernel, static_cast<std::uint32_t>(channels * 16 + kernel));
        Buffer<float> want(Conv::kTokens * channels);
        conv.run(Level::scalar, want, 0, Conv::kTokens, with_tail);
        for (std::int64_t t = 0; t < Conv::kTokens; t++)
          for (std::int64_t c = 0; c < channels; c++) {
            double sum = 0, size = 0;
            for (std::int64_t j = 0; j < kernel; j++) {
              const double term = conv.weight[c * kernel + j] * conv.input(t - kernel + 1 + j, c, with_tail);
              sum += term;
              size += std::abs(term);
            }
            const double exact = sum / (1 + std::exp(-sum));
            // `kernel` roundings of at most the terms' size; silu's slope is below 1.1; then exp (2), sum,
            // division.
            EXPECT_NEAR(want[t * channels + c], exact,
                        (1.1 * static_cast<double>(kernel) * size + 6 * std::abs(exact)) * kUnit);
          }
        for (const Level level : runnable_levels()) {
          Buffer<float> y(Conv::kTokens * channels);
          for (const std::int64_t cut : {1, 5}) {
            conv.run(level, y, 0, cut, with_tail);
            conv.run(level, y, cut, Conv::kTokens, with_tail);
            EXPECT_TRUE(same_bits(y, want)) << level_name(level) << " " << channels << " " << kernel;
          }
        }
      }
}

TEST(UnitLength, is_close_to_double_and_equal_at_every_level) {
  for (const std::int64_t n : {1, 15, 16, 17, 128, 200}) {
    Numbers numbers(static_cast<std::uint32_t>(n));
    Buffer<float> x(3 * n, 1), want(3 * n);
    numbers.fill(x, 2.0f);
    for (std::int64_t i = 0; i < n; i++) x[2 * n + i] = 0.0f;
    for (std::int64_t i = 0; i < 3 * n; i++) want[i] = x[i];
    scalar_kernels().unit_length({want.data(), 3, n, n, 1e-6f, 0.25f});
    for (std::int64_t i = 0; i < 3 * n; i++) {
      double squares = 0;
      for (std::int64_t k = 0; k < n; k++) squares += double{x[i / n * n + k]} * x[i / n * n + k];
      const double exact = x[i] * 0.25 / std::sqrt(squares + 1e-6);
      // As in RmsNorm: n/16 squares a lane, 4 in the tree, halved by the root; 5 more operations.
      EXPECT_NEAR(want[i], exact, std::abs(exact) * (static_cast<double>(n) / 32 + 8) * kUnit);
    }
    for (const Level level : runnable_levels()) {
      Buffer<float> y(3 * n, 3);
      for (std::int64_t i = 0; i < 3 * n; i++) y[i] = x[i];
      kernels_for(level).unit_length({y.data(), 3, n, n, 1e-6f, 0.25f});
      EXPECT_TRUE(same_bits(y, want)) << level_name(level) << " n " << n;
    }
  }
}

TEST(DeltaGates, are_close_to_double_and_equal_at_every_level) {
  for (const std::int64_t heads : {1, 3, 16, 33}) {
    constexpr std::int64_t kTokens = 5;
    Numbers numbers(static_cast<std::uint32_t>(heads));
    Buffer<float> a(kTokens * heads), b(kTokens * heads), a_log(heads), dt(heads);
    numbers.fill(a, 3.0f);
    numbers.fill(b, 4.0f);
    numbers.fill(dt);
    for (std::int64_t h = 0; h < heads; h++) a_log[h] = std::log(0.05f + 16.0f * std::abs(numbers.normal()));
    a[0] = -200.0f, b[0] = 200.0f;
    Buffer<float> decay(kTokens * heads), update(kTokens * heads);
    scalar_kernels().delta_gates(
        {a.data(), b.data(), a_log.data(), dt.data(), decay.data(), update.data(), kTokens, heads});
    for (std::int64_t i = 0; i < kTokens * heads; i++) {
      const double sum = double{a[i]} + dt[i % heads];
      const double slope = 1 / (1 + std::exp(-sum));
      const double softplus = sum > 50 ? sum : std::log1p(std::exp(sum));
      const double power = std::exp(double{a_log[i % heads]}) * softplus;
      // The exponent: exp and softplus give 2 and 8 units, the product one, the rounding of a + dt its size
      // times the slope. exp turns that into as many units of the result and adds 2; below e^-87 it is 0.
      const double exponent_error =
          (11 * power + std::exp(double{a_log[i % heads]}) * slope * std::abs(sum)) * kUnit;
      EXPECT_NEAR(decay[i], std::exp(-power), std::exp(-power) * (exponent_error + 2 * kUnit) * 1.01 + 1e-37);
      const double exact = 1 / (1 + std::exp(-double{b[i]}));
      EXPECT_NEAR(update[i], exact, exact * 5 * kUnit + 1e-36);
    }
    EXPECT_EQ(decay[0], 1.0f);
    EXPECT_EQ(update[0], 1.0f);
    for (const Level level : runnable_levels()) {
      Buffer<float> d(kTokens * heads, 1), u(kTokens * heads, 2);
      kernels_for(level).delta_gates(
          {a.data(), b.data(), a_log.data(), dt.data(), d.data(), u.data(), kTokens, heads});
      EXPECT_TRUE(same_bits(d, decay)) << level_name(level);
      EXPECT_TRUE(same_bits(u, update)) << level_name(level);
    }
  }
}

// One layer with random inputs whose q, k and v lie side by side.
struct Rule {
  static constexpr std::int64_t kTokens = 9;
  Rule(std::int64_t keys, std::int64_t values, std::int64_t key_size, std::int64_t value_size,
       bool tiled = false)
      : key_heads(keys),
        value_heads(values),
        key_dim(key_size),
        value_dim(value_size),
        stride(2 * key_heads * key_dim + value_heads * value_dim),
        rows(value_heads * value_dim),
        is_tiled(tiled),
        qkv(kTokens * stride, 1),
        decay(kTokens * value_heads),
        update(kTokens * value_heads),
        state(rows * key_dim, 1) {
    Numbers numbers(static_cast<std::uint32_t>(key_heads * 1000 + value_dim * 32 + key_dim));
    numbers.fill(qkv, 1.0f / std::sqrt(static_cast<float>(key_dim)));
    numbers.fill(state);
    for (std::int64_t i = 0; i < decay.size(); i++) {
      decay[i] = 0.5f + 0.5f / (1.0f + std::abs(numbers.normal()));
      update[i] = 1.0f / (1.0f + std::abs(numbers.normal()));
    }
  }
  // Tokens [begin, end) from and into `moved`; rows by `step` at a time.
  void run(Level level, const float* from, Buffer<float>& moved, Buffer<float>* out, std::int64_t begin,
           std::int64_t end, std::int64_t step) const {
    const float* const q = qkv.data() + begin * stride;
    for (std::int64_t row = 0; row < rows; row += step)
      kernels_for(level).delta_rule({q, q + key_heads * key_dim, q + 2 * key_heads * key_dim,
                                     decay.data() + begin * value_heads, update.data() + begin * value_heads,
                                     from, moved.data(), out ? out->data() + begin * rows : nullptr,
                                     end - begin, key_heads, value_heads, key_dim, value_dim, stride, rows,
                                     row, std::min(row + step, rows), is_tiled});
  }
  std::int64_t key_head_of(std::int64_t head) const {
    return is_tiled ? head % key_heads : head * key_heads / value_heads;
  }
  std::int64_t key_heads, value_heads, key_dim, value_dim, stride, rows;
  bool is_tiled;
  Buffer<float> qkv, decay, update, state;
};

// Row `row` of the state after every token, in double, and its outputs. With |k| and |q| near 1 and decay at
// most 1 an error in S does not grow: a token adds at most key_dim/16 + 8 roundings of the largest |S| to m,
// the same times |k| through d, and two of its own.
void expect_close_to_double(const Rule& rule, const Buffer<float>& moved, const Buffer<float>& out) {
  for (std::int64_t row = 0; row < rule.rows; row++) {
    const std::int64_t head = row / rule.value_dim, key_head = rule.key_head_of(head);
    std::vector<double> state(rule.state.data() + row * rule.key_dim,
                              rule.state.data() + (row + 1) * rule.key_dim);
    double error = 0;
    for (std::int64_t t = 0; t < Rule::kTokens; t++) {
      const float* const q = rule.qkv.data() + t * rule.stride + key_head * rule.key_dim;
      const float* const k = q + rule.key_heads * rule.key_dim;
      const double v = rule.qkv[t * rule.stride + 2 * rule.key_heads * rule.key_dim + row];
      const double decay = rule.decay[t * rule.value_heads + head],
                   update = rule.update[t * rule.value_heads + head];
      double held = 0, held_size = 0, k_size = 0, q_size = 0, out_size = 0, sum = 0, largest_k = 0;
      for (std::int64_t j = 0; j < rule.key_dim; j++) {
        held += decay * state[j] * k[j];
        held_size += std::abs(state[j] * k[j]);
        k_size += std::abs(k[j]);
        q_size += std::abs(q[j]);
        largest_k = std::max(largest_k, double{std::abs(k[j])});
      }
      const double delta = (v - held) * update;
      const double roundings = static_cast<double>(rule.key_dim) / 16 + 8;
      const double delta_error =
          error * k_size + (roundings * held_size + 3 * (std::abs(v) + held_size)) * kUnit;
      double largest = 0;
      for (std::int64_t j = 0; j < rule.key_dim; j++) {
        state[j] = state[j] * decay + k[j] * delta;
        sum += state[j] * q[j];
        out_size += std::abs(state[j] * q[j]);
        largest = std::max(largest, std::abs(state[j]));
      }
      error = error * decay + largest_k * delta_error + 3 * (largest + largest_k * std::abs(delta)) * kUnit;
      EXPECT_NEAR(out[t * rule.rows + row], sum, error * q_size + roundings * out_size * kUnit);
    }
    for (std::int64_t j = 0; j < rule.key_dim; j++)
      EXPECT_NEAR(moved[row * rule.key_dim + j], state[static_cast<std::size_t>(j)], error);
  }
}

const Rule kRules[] = {{1, 1, 16, 16}, {1, 2, 17, 5}, {2, 4, 32, 9}, {2, 2, 5, 3}, {1, 3, 128, 8}, {2, 4, 32, 9, true}};

TEST(DeltaRule, is_close_to_double) {
  for (const Rule& rule : kRules) {
    Buffer<float> moved(rule.state.size()), out(Rule::kTokens * rule.rows);
    rule.run(Level::scalar, rule.state.data(), moved, &out, 0, Rule::kTokens, rule.rows);
    expect_close_to_double(rule, moved, out);
  }
}

TEST(DeltaRule, has_the_same_bits_at_every_level_and_for_any_cut_of_tokens_and_rows) {
  for (const Rule& rule : kRules) {
    Buffer<float> want(rule.state.size()), want_out(Rule::kTokens * rule.rows);
    rule.run(Level::scalar, rule.state.data(), want, &want_out, 0, Rule::kTokens, rule.rows);
    for (const Level level : runnable_levels())
      for (const std::int64_t cut : {1, 4, 8})
        for (const std::int64_t step : {std::int64_t{1}, std::int64_t{3}, std::int64_t{4}, std::int64_t{7}}) {
          Buffer<float> moved(rule.state.size(), 1), out(Rule::kTokens * rule.rows, 1);
          rule.run(level, rule.state.data(), moved, &out, 0, cut, step);
          rule.run(level, moved.data(), moved, &out, cut, Rule::kTokens, step);
          EXPECT_TRUE(same_bits(moved, want)) << level_name(level);
          EXPECT_TRUE(same_bits(out, want_out)) << level_name(level);
          rule.run(level, rule.state.data(), moved, nullptr, 0, Rule::kTokens, step);
          EXPECT_TRUE(same_bits(moved, want)) << level_name(level) << " without outputs";
        }
  }
}

TEST(DeltaRule, starts_from_zeros_without_a_state) {
  const Rule& rule = kRules[2];
  Buffer<float> zeros(rule.state.size()), want(rule.state.size()), moved(rule.state.size());
  for (const Level level : runnable_levels()) {
    rule.run(level, zeros.data(), want, nullptr, 0, Rule::kTokens, 4);
    rule.run(level, nullptr, moved, nullptr, 0, Rule::kTokens, 4);
    EXPECT_TRUE(same_bits(moved, want)) << level_name(level);
  }
}

}  // namespace
}  // namespace godwit::kernels
