// What the golden tests of whole models do not reach: forms on their own, packed rows, refusals.
#include <gtest/gtest.h>
#include <mlx/io.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <functional>
#include <random>
#include <unordered_map>

#include "base/error.h"
#include "base/mx_ops.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/weight_store.h"
#include "nn/activations.h"
#include "nn/embedding.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "nn/rope.h"
#include "support/random_array.h"

namespace godwit::nn {
namespace {

using checkpoint::RopeScaling;
using checkpoint::WeightScope;
using checkpoint::WeightStore;

using testing_support::random_array;

std::vector<float> floats(const mx::array& x) {
  mx::array wide = mx::contiguous(mx::astype(x, mx::float32));
  wide.eval();
  return {wide.data<float>(), wide.data<float>() + wide.size()};
}

bool same(const mx::array& a, const mx::array& b) {
  return a.dtype() == b.dtype() && mx::array_equal(a, b).item<bool>();
}

// A store over a safetensors file that MLX itself writes.
WeightScope scope_of(const std::unordered_map<std::string, mx::array>& tensors,
                     bool norms_include_one = false) {
  const auto path = std::filesystem::temp_directory_path() /
                    (std::string("godwit_nn_") +
                     testing::UnitTest::GetInstance()->current_test_info()->name() + ".safetensors");
  mx::save_safetensors(path.string(), tensors);
  auto entries = checkpoint::read_safetensors(std::make_shared<const FileMap>(path));
  return {std::make_shared<WeightStore>(std::move(entries), checkpoint::QuantizationMap(), path.string(),
                                        checkpoint::WeightRules{}, norms_include_one),
          ""};
}

std::string message_of(const std::function<void()>& body, ErrorCode code) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

TEST(Activations, EqualTheirFormulasAndKeepTheDtype) {
  const auto silu_of = [](double x) { return x / (1 + std::exp(-x)); };
  const auto gelu_of = [](double x) { return x * (1 + std::erf(x / std::sqrt(2.0))) / 2; };
  const auto approx_of = [](double x) {
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  };
  const std::pair<Activation, std::function<double(double)>> forms[] = {
      {Activation::silu, silu_of}, {Activation::gelu, gelu_of}, {Activation::gelu_approx, approx_of}};
  const mx::array x = random_array({257}, 3) * mx::array(3.0f);
  const std::vector<float> values = floats(x);
  for (const auto& [activation, formula] : forms) {
    const std::vector<float> got = floats(activate(activation, x));
    // A handful of f32 roundings, plus the cancellation in 1 + tanh or 1 + erf: absolute, in units of |x|
    // <= 12.
    for (std::size_t i = 0; i < got.size(); ++i)
      EXPECT_NEAR(got[i], formula(values[i]), 12 * 8.0 / (1 << 24));
    for (const mx::Dtype dtype : {mx::bfloat16, mx::float16})
      EXPECT_EQ(activate(activation, mx::astype(x, dtype)).dtype(), dtype);
  }
}

TEST(Linear, QuantizedBiasIsAddedAfterTheProductAndDenseBiasInsideIt) {
  const mx::array w = random_array({8, 64}, 1, mx::bfloat16), bias = random_array({8}, 2, mx::bfloat16);
  const mx::array x = random_array({5, 64}, 3, mx::bfloat16);
  const Linear dense(scope_of({{"m.weight", w}, {"m.bias", bias}}) / "m", 64, 8, true);
  EXPECT_TRUE(same(dense(x), mx::addmm(bias, x, mx::transpose(w))));
  const std::vector<mx::array> q = mx::quantize(w, 32, 4);
  const Linear packed(
      scope_of({{"m.weight", q[0]}, {"m.scales", q[1]}, {"m.biases", q[2]}, {"m.bias", bias}}) / "m", 64, 8,
      true);
  EXPECT_TRUE(same(packed(x), mx::quantized_matmul(x, q[0], q[1], q[2], true, 32, 4) + bias));
}

TEST(Linear, AWeightWithoutMlxLayoutIsMultipliedByItsExactValues) {
  // One Q6_K block a row: 128 + 64 bytes of quants, 16 scales, d.
  std::vector<std::uint8_t> bytes(3 * 210);
  std::mt19937 random(7);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  for (int row = 0; row < 3; ++row) bytes[row * 210 + 208] = 0x00, bytes[row * 210 + 209] = 0x2c;  // d = 1/16
  checkpoint::Weight weight{.kind = checkpoint::WeightKind::blocks,
                            .format = checkpoint::TensorFormat::q6_k,
                            .rows = 3,
                            .columns = 256,
                            .data = mx::array(bytes.data(), {3, 210}, mx::uint8),
                            .scales = std::nullopt,
                            .biases = std::nullopt};
  const mx::array x = random_array({2, 256}, 4);
  EXPECT_TRUE(same(Linear(weight)(x), mx::matmul(x, mx::transpose(weight.dequantize(mx::float32)))));
}

TEST(Embedding, GathersRowsInEveryFormatAndWidensOnlyWhenAsked) {
  const mx::array w = random_array({16, 64}, 5, mx::float16);
  const mx::array tokens = mx::array({3, 0, 15, 3});
  const WeightScope dense = scope_of({{"e.weight", w}});
  EXPECT_TRUE(same(Embedding(dense / "e", 16, 64)(tokens), mx::take(w, tokens, 0)));
  EXPECT_TRUE(same(Embedding(dense / "e", 16, 64, mx::float32)(tokens),
                   mx::astype(mx::take(w, tokens, 0), mx::float32)));
  const std::vector<mx::array> q = mx::quantize(w, 32, 4);
  const WeightScope packed = scope_of({{"e.weight", q[0]}, {"e.scales", q[1]}, {"e.biases", q[2]}});
  const Embedding rows(packed / "e", 16, 64);
  EXPECT_TRUE(same(rows(tokens), mx::take(mx::dequantize(q[0], q[1], q[2], 32, 4), tokens, 0)));
  // Product and sum in f32, where f16 scales are exact.
  const mx::array exact =
      mx::dequantize(q[0], mx::astype(q[1], mx::float32), mx::astype(q[2], mx::float32), 32, 4);
  EXPECT_TRUE(same(Embedding(packed / "e", 16, 64, mx::float32)(tokens), mx::take(exact, tokens, 0)));
  const mx::array x = random_array({2, 64}, 6, mx::float16);
  EXPECT_TRUE(same(rows.as_linear()(x), mx::quantized_matmul(x, q[0], q[1], q[2], true, 32, 4)));
  EXPECT_EQ(rows.element_bytes(), 2);
}

TEST(Norm, FormsOnePlusWeightInTheWeightsDtypeUnlessTheFileHoldsTheSum) {
  const mx::array w = random_array({32}, 8, mx::bfloat16), x = random_array({3, 32}, 9, mx::bfloat16);
  const mx::array sum = mx::array(1.0f, mx::bfloat16) + w;
  const WeightScope plain = scope_of({{"n.weight", w}});
  const NormOptions by_weight = {.dims = 32, .eps = 1e-6};
  NormOptions by_sum = by_weight;
  by_sum.gain = NormGain::one_plus_weight;
  EXPECT_TRUE(same(Norm(plain / "n", by_weight)(x), mx::fast::rms_norm(x, w, 1e-6f)));
  EXPECT_TRUE(same(Norm(plain / "n", by_sum)(x), mx::fast::rms_norm(x, sum, 1e-6f)));
  const WeightScope stored = scope_of({{"n.weight", sum}}, /*norms_include_one=*/true);
  EXPECT_TRUE(same(Norm(stored / "n", by_sum)(x), mx::fast::rms_norm(x, sum, 1e-6f)));
}

TEST(Norm, WithoutAGainAsksForNoTensor) {
  const mx::array x = random_array({3, 32}, 9);
  const WeightScope scope = scope_of({{"other", x}});
  EXPECT_TRUE(same(Norm(scope / "n", {.dims = 32, .eps = 1e-6, .gain = NormGain::none})(x),
                   mx::fast::rms_norm(x, std::nullopt, 1e-6f)));
  EXPECT_THROW(scope.store().audit(), Error);  // "other" was not asked for, and nothing is missing
}

TEST(Norm, OfLayersCentresScalesAndShifts) {
  const mx::array w = random_array({32}, 10), b = random_array({32}, 11), x = random_array({1, 32}, 12);
  const WeightScope scope = scope_of({{"n.weight", w}, {"n.bias", b}});
  const NormOptions options = {.dims = 32, .eps = 1e-5, .kind = NormKind::layer, .bias = true};
  const std::vector<float> got = floats(Norm(scope / "n", options)(x));
  const std::vector<float> values = floats(x), gains = floats(w), shifts = floats(b);
  double mean = 0, variance = 0;
  for (const float value : values) mean += value / 32.0;
  for (const float value : values) variance += (value - mean) * (value - mean) / 32.0;
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], (values[i] - mean) / std::sqrt(variance + 1e-5) * gains[i] + shifts[i],
                32.0 * 8 / (1 << 24));
}

Rope::Options rope_options(std::optional<RopeScaling> scaling = {}) {
  Rope::Options options;
  options.dims = 8;
  options.scaling = std::move(scaling);
  options.max_positions = 64;
  return options;
}

TEST(Rope, PackedRowsTurnAsEachWouldAlone) {
  for (const char* const type : {"default", "dynamic", "llama3", "yarn"}) {
    RopeScaling scaling;
    scaling.type = type;
    scaling.factor = 4;
    const Rope rope(rope_options(scaling));
    const mx::array x = random_array({9, 2, 12}, 13);  // 4 of 12 dims pass through
    const std::array offsets{70, 0, 3}, tokens{4, 1, 4};
    const mx::array packed = rope(x, offsets, tokens);
    for (int row = 0, begin = 0; row < 3; begin += tokens[row++]) {
      const mx::Shape from{begin, 0, 0}, to{begin + tokens[row], 2, 12};
      const mx::array alone = rope(mx::slice(x, from, to), {&offsets[row], 1}, {&tokens[row], 1});
      EXPECT_TRUE(same(mx::slice(packed, from, to), alone)) << type << " row " << row;
    }
    EXPECT_TRUE(same(mx::slice(packed, {0, 0, 8}, {9, 2, 12}), mx::slice(x, {0, 0, 8}, {9, 2, 12}))) << type;
  }
}

// yarn and longrope multiply the part that turns, and only that.
TEST(Rope, InputScaleLeavesThePassThroughPartAlone) {
  RopeScaling scaling;
  scaling.type = "longrope";
  scaling.original_max_position = 16;
  scaling.long_factor.assign(4, 1.0);
  const mx::array x = random_array({1, 2, 12}, 14);
  const int offset = 0, tokens = 1;
  const std::vector<float> got = floats(Rope(rope_options(scaling))(x, {&offset, 1}, {&tokens, 1})),
                           in = floats(x);
  const double scale = std::sqrt(1 + std::log(4.0) / std::log(16.0));
  for (std::size_t i = 0; i < got.size();
       ++i)  // position 0 turns by nothing; one f32 rounding of the product
    EXPECT_NEAR(got[i], i % 12 < 8 ? in[i] * scale : in[i], std::abs(in[i]) * 2 / (1 << 23));
}

TEST(Rope, PeriodFactorsOfAFileStretchThePeriods) {
  Rope::Options options = rope_options();
  options.period_factors = mx::array({1.0f, 2.0f, 3.0f, 4.0f});
  const std::vector<float> got = floats(Rope(options).periods().value());
  for (int i = 0; i < 4; ++i) {
    const double period = std::pow(10000.0, i / 4.0) * (i + 1);
    EXPECT_NEAR(got[i], period, period * 8 / (1 << 24));
  }
  EXPECT_FALSE(Rope(rope_options()).periods().has_value());
}

TEST(Rope, RefusesUnknownTypesAndMissingKeysByName) {
  const auto refused = [](const std::function<void(RopeScaling&, Rope::Options&)>& change) {
    return message_of(
        [&] {
          RopeScaling scaling;
          Rope::Options options = rope_options();
          change(scaling, options);
          options.scaling = scaling;
          Rope rope(options);
        },
        ErrorCode::unsupported);
  };
  EXPECT_NE(refused([](auto& s, auto&) { s.type = "spiral"; }).find("'spiral'"), std::string::npos);
  EXPECT_NE(refused([](auto& s, auto&) { s.type = "mrope"; }).find("3 are needed"), std::string::npos);
  EXPECT_NE(refused([](auto& s, auto&) { s.type = "su"; }).find("original_max"), std::string::npos);
  EXPECT_NE(refused([](auto& s, auto&) {
              s.type = "longrope", s.original_max_position = 9;
            }).find("0 long factors"),
            std::string::npos);
  EXPECT_NE(
      refused([](auto& s, auto& o) { s.type = "dynamic", o.max_positions.reset(); }).find("max_position"),
      std::string::npos);
}

}  // namespace
}  // namespace godwit::nn
