#include "kernels/kv_codec.h"

#include "base/error.h"
#include "kernels/half.h"
#include "kernels/kv_test_support.h"
#include "kernels/restore_values.h"
#include "kernels/turbo_tables.h"

namespace godwit::kernels {
namespace {

// One head of one token, stored and decoded in the role of keys.
struct Coded {
  std::vector<std::uint8_t> record;
  std::vector<float> decoded;
};
Coded coded(KvPlane plane, const std::vector<float>& x) {
  plane.heads = 1;
  plane.dim = static_cast<std::int64_t>(x.size());
  Buffer<std::byte> block(plane_bytes(plane));
  void* const blocks[] = {block.data()};
  store_kv({x.data(), nullptr, blocks, plane, plane, 0, 1, plane.dim, 0});
  Buffer<float> keys(plane.dim * 64), values(plane.dim * 64);
  kernels_for(Level::scalar).decode_kv({block.data(), plane, plane, 0, 0, 1, keys.data(), values.data()});
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(block.data());
  Coded out{{bytes, bytes + record_bytes(plane)}, {}};
  for (std::int64_t d = 0; d < plane.dim; d++) out.decoded.push_back(keys[d * 64]);
  return out;
}
float half_at(const std::vector<std::uint8_t>& record, std::size_t at) {
  return half_to_float(static_cast<std::uint16_t>(record[at] | record[at + 1] << 8));
}
std::vector<float> gaussian(std::int64_t n, std::uint32_t seed) {
  Buffer<float> x(n);
  Numbers(seed).fill(x);
  return {x.data(), x.data() + n};
}

TEST(KvPlane, bytes_are_codes_and_parameters) {
  const auto bytes = [](KvPlane plane) { return plane.dim = 128, record_bytes(plane); };
  EXPECT_EQ(bytes({KvForm::affine, 8, 64}) * 2, 272);  // the table of bytes per token: keys and values of 128
  EXPECT_EQ(bytes({KvForm::affine, 4, 64}) * 2, 144);
  EXPECT_EQ(bytes({KvForm::turbo_keys, 8, 32}) + bytes({KvForm::turbo_values, 4, 32}), 216);
  EXPECT_EQ(bytes({KvForm::turbo_keys, 8, 32}) + bytes({KvForm::turbo_values, 3, 32}), 200);
  EXPECT_EQ(bytes({KvForm::turbo_keys, 4, 32}) + bytes({KvForm::turbo_values, 3, 32}), 136);
  EXPECT_EQ(bytes({KvForm::bf16}) * 2, 512);
  EXPECT_EQ(plane_bytes({.form = KvForm::affine, .bits = 4, .group = 64, .heads = 3, .dim = 128}),
            3 * 64 * 72);
}

TEST(KvPlane, what_cannot_exist_is_refused_by_name) {
  const auto refusal = [](KvForm form, int bits, int group, std::int64_t dim) -> std::string {
    try {
      check_plane({.form = form, .bits = bits, .group = group, .heads = 1, .dim = dim});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unsupported);
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal(KvForm::affine, 4, 64, 128), "");
  EXPECT_EQ(refusal(KvForm::turbo_values, 3, 32, 512), "");
  EXPECT_NE(refusal(KvForm::affine, 7, 64, 128).find("affine of 7 bits"), std::string::npos);
  EXPECT_NE(refusal(KvForm::affine, 4, 64, 96).find("96"), std::string::npos);
  EXPECT_NE(refusal(KvForm::turbo_keys, 3, 32, 128).find("turbo keys of 3 bits"), std::string::npos);
  EXPECT_NE(refusal(KvForm::turbo_values, 4, 32, 96).find("96"), std::string::npos);
  EXPECT_NE(refusal(KvForm::f32, 0, 0, 640).find("640"), std::string::npos);
  EXPECT_NE(refusal(KvForm::f32, 0, 0, 24).find("24"), std::string::npos);
}

// Element i occupies bits [i b, (i + 1) b) of the record, lowest first; here the code is the element itself.
TEST(KvCodec, codes_follow_the_bit_position_rule) {
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    const int top = (1 << bits) - 1;
    std::vector<float> x(32);
    for (int i = 0; i < 32; i++)
      x[static_cast<std::size_t>(i)] = static_cast<float>(i == 0 ? 0 : (i * 5 + 1) % (top + 1));
    x[1] = static_cast<float>(top);  // the edge: scale -1, bias top, codes top - x
    const Coded got = coded({KvForm::affine, bits, 32}, x);
    for (int i = 0; i < 32; i++) {
      int code = 0;
      for (int bit = 0; bit < bits; bit++) {
        const int at = i * bits + bit;
        code |= (got.record[static_cast<std::size_t>(at / 8)] >> (at % 8) & 1) << bit;
      }
      ASSERT_EQ(code, top - static_cast<int>(x[static_cast<std::size_t>(i)]))
          << bits << " bits, element " << i;
      ASSERT_EQ(got.decoded[static_cast<std::size_t>(i)], x[static_cast<std::size_t>(i)]);
    }
    EXPECT_EQ(half_at(got.record, static_cast<std::size_t>(4 * bits)), -1.0f);
    EXPECT_EQ(half_at(got.record, static_cast<std::size_t>(4 * bits + 2)), static_cast<float>(top));
  }
}

// A step is |scale|. The fitted grid ends at most one step short of the far edge, and the rounded scale
// (2^-11 of it, or 2^-25 below the normal halves) and bias move the far end by top times that and by 2^-11 of
// the edge. Elsewhere codes are the nearest to the rounded grid: half a step, and the f32 roundings of a
// product and a sum.
TEST(KvCodec, affine_errors_stay_below_a_step) {
  const std::uint32_t seed = 11;
  for (const int bits : {2, 3, 4, 5, 6, 8})
    for (int trial = 0; trial < 300; trial++) {
      Numbers numbers(seed + static_cast<std::uint32_t>(trial));
      std::vector<float> x = gaussian(32, seed + static_cast<std::uint32_t>(trial));
      const float spread = std::exp2(static_cast<float>(numbers.integer(-8, 8))),
                  shift = numbers.normal(4.0f);
      double edge = 0;
      for (float& value : x) {
        value = (value + shift) * spread;
        edge = std::max(edge, std::abs(double{value}));
      }
      const Coded got = coded({KvForm::affine, bits, 32}, x);
      const double top = (1 << bits) - 1,
                   step = std::abs(half_at(got.record, static_cast<std::size_t>(4 * bits)));
      const double slack = edge * 4 * kUnit;
      for (int i = 0; i < 32; i++) {
        int code = 0;
        for (int bit = 0; bit < bits; bit++) {
          const int at = i * bits + bit;
          code |= (got.record[static_cast<std::size_t>(at / 8)] >> (at % 8) & 1) << bit;
        }
        const double error =
            std::abs(double{got.decoded[static_cast<std::size_t>(i)]} - x[static_cast<std::size_t>(i)]);
        ASSERT_LE(error, step * (1 + top * 0x1p-11) + top * 0x1p-25 + edge * 0x1p-11 + 0x1p-25 + slack)
            << bits << " bits, trial " << trial << ", seed " << seed;
        ASSERT_LE(code > 0 && code < top ? error : 0, step / 2 + slack) << bits << " bits, trial " << trial;
      }
    }
}

TEST(KvCodec, a_group_does_not_touch_its_neighbours) {
  for (const Codec& codec : all_codecs()) {
    if (codec.keys.form != KvForm::affine && codec.keys.form != KvForm::turbo_keys) continue;
    std::vector<float> x = gaussian(256, 12);
    const Coded before = coded(codec.keys, x);
    for (int i = 128; i < 256; i++) x[static_cast<std::size_t>(i)] *= 3.0f;
    const Coded after = coded(codec.keys, x);
    const auto codes = static_cast<std::size_t>(256 * codec.keys.bits / 8);
    const std::size_t parameters = before.record.size() - codes;
    EXPECT_EQ(std::memcmp(before.record.data(), after.record.data(), codes / 2), 0) << codec.name;
    EXPECT_EQ(std::memcmp(before.record.data() + codes, after.record.data() + codes, parameters / 2), 0)
        << codec.name;
  }
}

TEST(TurboKeys, the_published_format_loses_a_constant_group_and_ours_keeps_it) {
  for (const int bits : {2, 4, 5, 8}) {
    const std::vector<float> half(32, 0.5f);
    const auto zero_at = static_cast<std::size_t>(4 * bits + 2);
    const Coded published = coded({KvForm::turbo_keys, bits, 32, true}, half);
    EXPECT_TRUE(std::isinf(half_at(published.record, zero_at))) << bits;
    EXPECT_TRUE(std::isnan(published.decoded[0])) << bits;
    for (const float constant : {0.5f, -3.0f, 0.0f, 2048.0f, -65504.0f})
      for (const float value :
           coded({KvForm::turbo_keys, bits, 32}, std::vector<float>(32, constant)).decoded)
        ASSERT_EQ(value, constant) << bits << " bits";
  }
}

// No element lies outside the grid of rounded parameters, so none is off by more than half a step; the step
// is the range, widened by a unit of f16 around it where the parameters were rounded, over the number of
// steps.
TEST(TurboKeys, ours_is_within_half_a_step_however_narrow_and_far_the_group) {
  for (const int bits : {2, 4, 5, 8})
    for (const float center : {0.0f, 0.1f, -7.3f, 300.0f, -5000.0f, 60000.0f})
      for (const float spread : {1e-7f, 1e-3f, 0.4f, 30.0f}) {
        std::vector<float> x = gaussian(32, 13);
        float lo = HUGE_VALF, hi = -HUGE_VALF;
        for (float& value : x) {
          value = center + spread * value;
          lo = std::min(lo, value);
          hi = std::max(hi, value);
        }
        const Coded got = coded({KvForm::turbo_keys, bits, 32}, x);
        const double unit = std::max(std::abs(double{center}) + 4 * spread, 0x1p-14) * 0x1p-10;
        const double steps = bits == 8 ? 254 : (1 << bits) - 1;
        const double step = half_at(got.record, static_cast<std::size_t>(4 * bits));
        EXPECT_LE(step, (double{hi} - lo + unit) / steps * (1 + 0x1p-10) + 0x1p-24) << bits << ' ' << center;
        for (std::size_t i = 0; i < 32; i++)
          ASSERT_LE(std::abs(double{got.decoded[i]} - x[i]), step / 2 + unit * 0x1p-12)
              << bits << " bits, " << spread << " around " << center;
      }
}

TEST(KvCodec, nothing_stored_is_ever_infinite_or_nan) {
  const float inf = HUGE_VALF, nan = std::nanf("");
  for (const Codec& codec : all_codecs()) {
    if (codec.keys.parity) continue;
    for (const std::vector<float>& bad :
         {std::vector<float>{inf, -inf, nan, 1.0f}, std::vector<float>{nan, nan, nan, nan},
          std::vector<float>{3e38f, -3e38f, 1.0f, 1e-40f}}) {
      TokenShape shape{1, 128, 128, 1};
      Tokens tokens(shape, codec, 14);
      for (std::int64_t i = 0; i < 128; i++) tokens.k[i] = tokens.v[i] = bad[static_cast<std::size_t>(i % 4)];
      tokens.store(1);
      Buffer<float> keys(128 * 64), values(128 * 64);
      kernels_for(Level::scalar)
          .decode_kv({tokens.blocks[0], tokens.keys, tokens.values, 0, 0, 1, keys.data(), values.data()});
      for (std::int64_t d = 0; d < 128; d++) {
        ASSERT_TRUE(tokens.keys.form <= KvForm::bf16 || std::isfinite(keys[d * 64])) << codec.name;
        ASSERT_TRUE(tokens.values.form <= KvForm::bf16 || std::isfinite(values[d])) << codec.name;
      }
    }
  }
}

TEST(TurboValues, turning_there_and_back_is_the_identity) {
  for (const std::int64_t dim : {64, 128, 256, 512}) {
    const std::vector<float> x = gaussian(dim, 15);
    std::vector<float> y = x;
    rotate_values(y.data(), dim);
    double before = 0, after = 0;
    for (std::int64_t i = 0; i < dim; i++) {
      before += double{x[static_cast<std::size_t>(i)]} * x[static_cast<std::size_t>(i)];
      after += double{y[static_cast<std::size_t>(i)]} * y[static_cast<std::size_t>(i)];
    }
    EXPECT_NEAR(after / before, 1.0, 1e-6);
    EXPECT_NE(y[0], x[0]);
    for (const Level level : runnable_levels()) {
      std::vector<float> back = y;
      EXPECT_EQ(kernels_for(level).restore_values({back.data(), 1, dim, dim}), level);
      // 9 stages and a product each way; partial sums of Gaussians stay below 4 sqrt(dim), then are divided
      // by it.
      for (std::int64_t i = 0; i < dim; i++)
        ASSERT_NEAR(back[static_cast<std::size_t>(i)], x[static_cast<std::size_t>(i)],
                    2 * 10 * 4 * 2 * kUnit);
    }
  }
}

// The published tables to six digits, and what they lose on Gaussian heads. A group is normalised by its own
// size, so the error is slightly below the table's; 64 heads of 512 leave a deviation of about 0.7 %.
TEST(TurboValues, lose_what_the_theory_says) {
  EXPECT_NEAR(turbo_levels(2)[2], 0.452780, 5e-7);
  EXPECT_NEAR(turbo_levels(2)[3], 1.510418, 5e-7);
  const double three[] = {0.245094, 0.756005, 1.343909, 2.151946},
               between[] = {0, 0.500550, 1.049957, 1.747927};
  const double four[] = {0.128395, 0.388048, 0.656759, 0.942340, 1.256231, 1.618046, 2.069017, 2.732590};
  for (int i = 0; i < 4; i++) EXPECT_NEAR(turbo_levels(3)[4 + i], three[i], 6e-7);
  for (int i = 0; i < 4; i++) EXPECT_NEAR(turbo_boundaries(3)[3 + i], between[i], 6e-7);
  for (int i = 0; i < 8; i++) EXPECT_NEAR(turbo_levels(4)[8 + i], four[i], 6e-7);
  EXPECT_NEAR(turbo_levels(5)[16], 0.065890, 6e-7);
  EXPECT_NEAR(turbo_levels(5)[31], 3.260732, 6e-7);

  const double wanted[] = {0.112, 0.0325, 0.0090};
  for (const int bits : {2, 3, 4}) {
    Tokens tokens({1, 64, 512, 64}, {"turbo", {}, {KvForm::turbo_values, bits, 32}}, 16);
    tokens.store(64);
    const Tokens dense = tokens.decoded(Level::scalar);
    auto* x = reinterpret_cast<float*>(static_cast<std::byte*>(dense.blocks[0]) + dense.values.offset);
    kernels_for(Level::scalar).restore_values({x, 64, 512, 512});
    double error = 0, size = 0;
    for (std::int64_t i = 0; i < 64 * 512; i++) {
      error += std::pow(double{x[i]} - tokens.v[i], 2);
      size += std::pow(double{tokens.v[i]}, 2);
    }
    EXPECT_NEAR(error / size, wanted[bits - 2], 0.03 * wanted[bits - 2]) << bits;
    EXPECT_LT(error / size, std::sqrt(3.0) * std::acos(-1.0) / 2 * std::pow(4.0, -bits)) << bits;
    EXPECT_GT(error / size, std::pow(4.0, -bits)) << bits;
  }
}

TEST(ReEncodeKv, gives_the_bytes_of_storing_the_dense_values) {
  for (const KvForm form : {KvForm::f32, KvForm::f16, KvForm::bf16})
    for (const Codec& codec : all_codecs()) {
      const TokenShape shape{2, 128, 128, 41};
      Tokens dense(shape, {"dense", {form}, {form}}, 17), direct(shape, codec, 17), turned(shape, codec, 17);
      const auto rounded = [&](float x) {
        return form == KvForm::f16    ? half_to_float(float_to_f16(x))
               : form == KvForm::bf16 ? bf16_to_float(float_to_bf16(x))
                                      : x;
      };
      for (std::int64_t i = 0; i < direct.k.size(); i++) {
        direct.k[i] = rounded(direct.k[i]);
        direct.v[i] = rounded(direct.v[i]);
      }
      dense.store(41);
      direct.store(8);
      re_encode_kv(
          {dense.blocks[0], dense.keys, dense.values, turned.blocks[0], turned.keys, turned.values, 41});
      ASSERT_TRUE(same_bytes(turned.storage[0], direct.storage[0])) << codec.name;
    }
}

TEST(StoreKv, one_token_at_a_time_gives_the_bytes_of_all_at_once) {
  for (const Codec& codec : all_codecs()) {
    const TokenShape shape{2, 128, 128, 75};
    Tokens singly(shape, codec, 18), together(shape, codec, 18);
    singly.store(1);
    together.store(75);
    for (std::size_t b = 0; b < 2; b++)
      ASSERT_TRUE(same_bytes(singly.storage[b], together.storage[b])) << codec.name;
  }
}

}  // namespace
}  // namespace godwit::kernels
