// Codecs of `reference` mode against themselves: what must hold whatever the numbers are. Their numbers are
// compared with mlx-lm, mlx-optiq and NumPy in tests/kv_oracle.
#include "cache/reference_codec.h"

#include <gtest/gtest.h>
#include <mlx/random.h>

#include <cstring>
#include <functional>

#include "base/error.h"
#include "base/mx_ops.h"
#include "cache/bit_stream.h"
#include "cache/reference_turbo.h"

namespace godwit::cache {
namespace {

constexpr std::uint64_t kSeed = 20261130;

mx::array noise(mx::Shape shape, std::uint64_t salt, mx::Dtype type = mx::bfloat16) {
  return mx::astype(mx::random::normal(shape, mx::float32, mx::random::key(kSeed + salt)), type);
}

bool same_bytes(const mx::array& a, const mx::array& b) {
  const mx::array left = mx::contiguous(a), right = mx::contiguous(b);
  mx::eval(left, right);
  return left.dtype() == right.dtype() && left.shape() == right.shape() &&
         std::memcmp(left.data<char>(), right.data<char>(), left.nbytes()) == 0;
}

mx::array positions(const mx::array& x, int begin, int end) {
  mx::Shape stop = x.shape();
  stop[2] = end;
  return mx::slice(x, {0, 0, begin, 0}, stop);
}

std::vector<mx::array> positions(const std::vector<mx::array>& x, int begin, int end) {
  std::vector<mx::array> part;
  for (const mx::array& component : x) part.push_back(positions(component, begin, end));
  return part;
}

std::vector<Codec> codecs() {
  std::vector<Codec> all;
  for (const char* name :
       {"dense", "affine:2:32", "affine:3:64", "affine:4:32", "affine:4:64", "affine:5:64", "affine:6:64",
        "affine:8:128", "turbo:8:3", "turbo:4:2:parity", "turbo:5:5:parity", "turbo:2:8", "turbo:8:4:parity"})
    all.push_back(parse_kv_policy(name).codec);
  return all;
}

struct Layer {
  Codec codec;
  mx::array q, k, v;  // of all positions
  std::vector<mx::array> keys = encode(codec, PlaneRole::keys, k, k.dtype());
  std::vector<mx::array> values = encode(codec, PlaneRole::values, v, v.dtype());

  // Queries [context, context + queries) over what they can see.
  mx::array run(int context, int queries, SpanKind kind, int window = 0, bool from_config = false) const {
    const int end = context + queries;
    const int begin = window > 0 ? std::max(0, context + 1 - window) : 0;
    AttendSpec spec;
    spec.scale = 0.125f;
    return attend({codec,
                   from_config,
                   false,
                   positions(q, context, end),
                   positions(keys, begin, end),
                   positions(values, begin, end),
                   {.kind = kind, .queries = queries, .context = context - begin, .window = window},
                   spec});
  }
};

Layer layer(const Codec& codec, int columns, mx::Dtype type = mx::bfloat16) {
  return {codec, noise({1, 4, columns, 128}, 1, type), noise({1, 2, columns, 128}, 2, type),
          noise({1, 2, columns, 128}, 3, type)};
}

TEST(ReferenceCodec, APositionsBytesDependOnThatPositionAlone) {
  for (const Codec& codec : codecs()) {
    SCOPED_TRACE(to_string(codec));
    for (const PlaneRole role : {PlaneRole::keys, PlaneRole::values}) {
      const mx::array x = noise({1, 2, 9, 128}, 4);
      const auto whole = encode(codec, role, x, x.dtype());
      for (int i = 0; i < 9; ++i) {
        const auto one = encode(codec, role, positions(x, i, i + 1), x.dtype());
        ASSERT_EQ(one.size(), whole.size());
        for (std::size_t c = 0; c < one.size(); ++c)
          EXPECT_TRUE(same_bytes(one[c], positions(whole[c], i, i + 1)))
              << "position " << i << " component " << c;
      }
    }
  }
}

TEST(ReferenceCodec, ACommittedSpanIsItsSingleSteps) {
  for (const Codec& codec : codecs()) {
    for (const mx::Dtype type : {mx::bfloat16, mx::float32}) {
      for (const bool from_config : {false, true}) {
        if (from_config && codec.kind != CodecKind::affine) continue;
        for (const int prefix : {0, 1, 255}) {
          const Layer l = layer(codec, prefix + 4, type);
          std::vector<mx::array> steps;
          for (int i = 0; i < 4; ++i) steps.push_back(l.run(prefix + i, 1, SpanKind::causal, 0, from_config));
          EXPECT_TRUE(
              same_bytes(l.run(prefix, 4, SpanKind::committed, 0, from_config), mx::concatenate(steps, 2)))
              << to_string(codec) << " prefix " << prefix << " config " << from_config;
        }
      }
    }
  }
}

TEST(ReferenceCodec, ACommittedSpanUnderAWindowIsItsSingleSteps) {
  constexpr int kWindow = 8;
  for (const Codec& codec : codecs()) {
    for (const int prefix : {0, 3, 6, 20}) {
      const Layer l = layer(codec, prefix + 5);
      std::vector<mx::array> steps;
      for (int i = 0; i < 5; ++i) steps.push_back(l.run(prefix + i, 1, SpanKind::causal, kWindow));
      EXPECT_TRUE(same_bytes(l.run(prefix, 5, SpanKind::committed, kWindow), mx::concatenate(steps, 2)))
          << to_string(codec) << " prefix " << prefix;
    }
  }
}

TEST(ReferenceCodec, DecodedSpansAreNearWhatWasEncoded) {
  const mx::array x = noise({1, 2, 64, 128}, 5, mx::float32);
  for (const Codec& codec : codecs()) {
    for (const PlaneRole role : {PlaneRole::keys, PlaneRole::values}) {
      const auto components = encode(codec, role, x, mx::float32);
      const mx::array error = decode(codec, role, components, mx::float32) - x;
      const int bits = codec.kind == CodecKind::dense    ? 16
                       : codec.kind == CodecKind::affine ? codec.bits
                       : role == PlaneRole::keys         ? codec.key_bits
                                                         : codec.value_bits;
      // Values keep the paper's bound, which is weaker than what an affine grid over three standard
      // deviations to each side gives: (6 / 2^b)^2 / 12 = 3 * 4^-b; 4 * 4^-b covers groups that reach
      // further.
      EXPECT_LT(mx::mean(error * error).item<float>(), 4.0 * std::pow(4.0, -bits)) << to_string(codec);
    }
  }
}

TEST(ReferenceCodec, SafeKeysOfConstantGroupsAreFinite) {
  for (const char* name : {"turbo:8:3", "turbo:5:3", "turbo:4:3", "turbo:2:3"}) {
    const Codec codec = parse_kv_policy(name).codec;
    for (const float value : {0.0f, 0.5f, -3.0f, 6e4f, 1e-6f, -100.25f}) {
      const mx::array x = mx::full({1, 1, 2, 64}, value, mx::float32);
      const mx::array y =
          decode(codec, PlaneRole::keys, encode(codec, PlaneRole::keys, x, mx::float32), mx::float32);
      // The stored minimum is the value in f16, 11 bits; near 0 f16 has steps of 6e-8.
      EXPECT_NEAR(mx::max(mx::abs(y - x)).item<float>(), 0.0f, std::abs(value) / 2048 + 6e-8f)
          << name << " " << value;
    }
  }
}

TEST(ReferenceCodec, TheBitStreamPutsElementIAtBitITimesB) {
  for (const int bits : {2, 3, 4, 5}) {
    const int count = 32;
    std::vector<std::uint32_t> codes;
    std::vector<std::uint8_t> expected(static_cast<std::size_t>(count * bits / 8), 0);
    for (int i = 0; i < count; ++i) {
      codes.push_back(static_cast<std::uint32_t>(i * 7 + i / 5) & ((1u << bits) - 1));
      for (int b = 0; b < bits; ++b)
        if (codes.back() >> b & 1u)
          expected[static_cast<std::size_t>((i * bits + b) / 8)] |= 1u << ((i * bits + b) % 8);
    }
    const mx::array packed = pack_bits(mx::array(codes.data(), {1, count}, mx::uint32), bits);
    EXPECT_TRUE(same_bytes(packed, mx::array(expected.data(), {1, count * bits / 8}, mx::uint8))) << bits;
    EXPECT_TRUE(same_bytes(unpack_bits(packed, bits), mx::array(codes.data(), {1, count}, mx::uint32)))
        << bits;
  }
}

TEST(ReferenceCodec, TheInverseTransformUndoesTheForwardOne) {
  for (const int dim : {64, 128, 256, 512}) {
    const mx::array x = noise({1, 2, 3, dim}, 6, mx::float32);
    // H and the signs are each their own inverse, so two inverse transforms around a sign flip are the
    // identity; f32 butterflies of log2(dim) levels round 2^-24 each: 1e-5 is far above.
    const auto planes = encode_turbo_values(parse_kv_policy("turbo:8:8").codec, x);
    const Codec codec = parse_kv_policy("turbo:8:8").codec;
    const mx::array rotated = decode_rotated(codec, planes, mx::float32);
    const mx::array back = inverse_transform(rotated);
    const float before = mx::sum(rotated * rotated).item<float>();
    EXPECT_NEAR(mx::sum(back * back).item<float>(), before, before * 1e-5f);
    EXPECT_TRUE(same_bytes(back, decode_turbo_values(codec, planes, mx::float32)));
  }
}

TEST(ReferenceCodec, WhatTheOracleCannotComputeIsRefusedByName) {
  const auto message_of = [](const Codec& codec, const AttendSpec& spec, bool from_config) {
    const Layer l = layer(codec, 3);
    try {
      attend({codec, from_config, false, l.q, l.keys, l.values, {.queries = 3, .context = 0}, spec});
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::unsupported);
      return std::string(e.what());
    }
    return std::string();
  };
  const Codec affine = parse_kv_policy("affine:4").codec, dense, turbo = parse_kv_policy("turbo:8:3").codec;
  AttendSpec capped, sinks, selected;
  capped.soft_cap = 30.0f;
  sinks.sinks = mx::zeros({4}, mx::bfloat16);
  selected.selected = mx::zeros({3, 1}, mx::int32);
  EXPECT_NE(message_of(affine, capped, false).find("affine:4:64"), std::string::npos);
  EXPECT_NE(message_of(affine, sinks, false).find("sinks"), std::string::npos);
  EXPECT_EQ(message_of(affine, sinks, true), "");
  EXPECT_EQ(message_of(turbo, capped, false), "");
  EXPECT_EQ(message_of(dense, sinks, false), "");
  EXPECT_EQ(message_of(dense, selected, false), "");
  EXPECT_NE(message_of(affine, selected, false).find("selected"), std::string::npos);
}

TEST(AttentionMask, ImagesSeeThemselvesAndNothingElseAhead) {
  const Visibility v = {.queries = 6, .context = 2, .window = 3, .together = {{1, 4}, {4, 6}}};
  EXPECT_EQ(mask_form(v), MaskForm::array);
  mx::array mask = mx::contiguous(visibility_mask(v));
  mask.eval();
  const bool* seen = mask.data<bool>();
  const auto image = [](int i) { return i == 0 ? 0 : i < 4 ? 1 : 2; };
  for (int i = 0; i < 6; ++i) {
    for (int j = 0; j < 8; ++j) {
      const bool causal = j <= i + 2 && i + 2 < j + 3;
      const bool together = j >= 2 && image(i) != 0 && image(i) == image(j - 2);
      EXPECT_EQ(seen[i * 8 + j], causal || together) << i << " " << j;
    }
  }
}

}  // namespace
}  // namespace godwit::cache
