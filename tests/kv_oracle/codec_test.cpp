// Every codec of `reference` mode, plane by plane and attention by attention, against what NumPy, mlx-lm and
// mlx-optiq computed from the same random tensors (make_codecs.py). Bits are compared.
#include <gtest/gtest.h>
#include <mlx/io.h>
#include <mlx/random.h>

#include <cmath>
#include <map>

#include "base/json.h"
#include "base/mx_ops.h"
#include "cache/reference_codec.h"
#include "cache/reference_turbo.h"
#include "oracle/same_bits.h"

namespace godwit::oracle {
namespace {

using cache::AttendSpec;
using cache::Codec;
using cache::CodecKind;
using cache::PlaneRole;

struct Case {
  Json facts;
  Codec codec;
  std::map<std::string, mx::array> tensors;

  std::string name() const { return facts.at("name").get<std::string>(); }
  const mx::array& tensor(const std::string& key) const { return tensors.at(key); }
  int number(const char* key) const { return facts.at(key).get<int>(); }
  bool is(const char* key) const { return facts.value(key, false); }
  std::vector<mx::array> planes(const std::string& prefix) const {
    std::vector<mx::array> found;
    for (int i = 0; tensors.contains(prefix + "." + std::to_string(i)); ++i)
      found.push_back(tensor(prefix + "." + std::to_string(i)));
    return found;
  }
};

// The cases whose names start so. Tensors are read with MLX's own reader.
std::vector<Case> cases_of(const std::string& oracle) {
  const std::filesystem::path folder = GODWIT_KV_CODECS;
  const Json json = read_json_file(folder / "cases.json");
  const auto tensors = mx::load_safetensors((folder / "tensors.safetensors").string()).first;
  std::map<std::string, Case> cases;
  for (const Json& facts : json.at("cases")) {
    const auto name = facts.at("name").get<std::string>();
    if (!name.starts_with(oracle)) continue;
    cases.emplace(name, Case{facts, cache::parse_kv_policy(facts.at("kv").get<std::string>()).codec, {}});
  }
  for (const auto& [key, array] : tensors) {
    const auto slash = key.find('/');
    const auto found = cases.find(key.substr(0, slash));
    if (found != cases.end()) found->second.tensors.emplace(key.substr(slash + 1), array);
  }
  std::vector<Case> list;
  for (auto& [name, each] : cases) list.push_back(std::move(each));
  return list;
}

mx::array evaluated(const mx::array& x) {
  mx::array out = mx::contiguous(x);
  out.eval();
  return out;
}

void expect_equal(const mx::array& actual, const mx::array& expected, const std::string& what) {
  EXPECT_TRUE(same_bits(evaluated(actual), evaluated(expected))) << what;
}

void expect_encodes_as(const Case& c, PlaneRole role, const std::string& input, const std::string& prefix) {
  const mx::array& x = c.tensor(input);
  const auto actual = cache::encode(c.codec, role, x, x.dtype());
  const auto expected = c.planes(prefix);
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i)
    expect_equal(actual[i], expected[i], prefix + "." + std::to_string(i));
}

void expect_attends_as(const Case& c) {
  AttendSpec spec;
  spec.scale = c.facts.at("scale").get<float>();
  if (c.tensors.contains("sinks")) spec.sinks = c.tensor("sinks");
  const cache::Visibility visibility = {
      .queries = c.number("queries"), .context = c.number("context"), .window = c.number("window")};
  expect_equal(cache::attend({.codec = c.codec,
                              .from_config = c.is("from_config"),
                              .reads_only = c.is("reads_only"),
                              .q = c.tensor("q"),
                              .keys = c.planes("keys"),
                              .values = c.planes("values"),
                              .visibility = visibility,
                              .spec = spec}),
               c.tensor("out"), "attention");
}

class AffineCodec : public testing::TestWithParam<const char*> {};

TEST_P(AffineCodec, PlanesAndAttentionEqualTheOraclesBitForBit) {
  const auto cases = cases_of(GetParam());
  ASSERT_GE(cases.size(), 126u);
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name());
    expect_encodes_as(c, PlaneRole::keys, "k", "keys");
    expect_encodes_as(c, PlaneRole::values, "v", "values");
    expect_attends_as(c);
  }
}

INSTANTIATE_TEST_SUITE_P(Oracle, AffineCodec, testing::Values("mlx-lm-", "optiq-"), [](const auto& instance) {
  return std::string(instance.param) == "optiq-" ? "MlxOptiq" : "MlxLm";
});

TEST(TurboCodec, PlanesEqualTheDefinitionInNumPyBitForBit) {
  const auto cases = cases_of("turbo-");
  ASSERT_EQ(cases.size(), 320u);
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name());
    expect_encodes_as(c, PlaneRole::keys, "k", "keys");
    expect_encodes_as(c, PlaneRole::values, "v", "values");
  }
}

TEST(TurboCodec, PlanesDecodeToWhatTheDefinitionSaysBitForBit) {
  for (const Case& c : cases_of("turbo-")) {
    SCOPED_TRACE(c.name());
    const auto keys = c.planes("keys"), values = c.planes("values");
    const mx::Dtype type = c.tensor("k").dtype();
    expect_equal(cache::decode(c.codec, PlaneRole::keys, keys, type), c.tensor("decoded_keys"), "keys");
    expect_equal(cache::decode(c.codec, PlaneRole::values, values, type), c.tensor("decoded_values"),
                 "values");
    expect_equal(cache::decode_rotated(c.codec, values, type), c.tensor("rotated_values"), "rotated values");
  }
}

// arXiv 2504.19874: E|x - x'|^2 <= (sqrt(3) pi / 2) 4^-b |x|^2 for the b-bit quantizer of a rotated vector.
TEST(TurboCodec, ValuesKeepThePapersBound) {
  for (const int dim : {64, 128, 256, 512}) {
    const mx::array x = mx::random::normal({1, 2, 512, dim}, mx::float32, mx::random::key(20261130));
    const float energy = mx::sum(x * x).item<float>();
    for (const int bits : {2, 3, 4, 5}) {
      const Codec codec = {.kind = CodecKind::turbo, .key_bits = 8, .value_bits = bits};
      const auto planes = cache::encode(codec, PlaneRole::values, x, mx::float32);
      const mx::array error = cache::decode(codec, PlaneRole::values, planes, mx::float32) - x;
      const float relative = mx::sum(error * error).item<float>() / energy;
      EXPECT_LT(relative, std::sqrt(3.0) * M_PI / 2 * std::pow(4.0, -bits)) << dim << " " << bits;
      EXPECT_GT(relative, std::pow(4.0, -bits)) << "better than any quantizer can be";
    }
  }
}

// Turning the output back is turning the values back, up to rounding: two f32 sums over at most 512 elements
// and the transform, each within 512 * 2^-24 of the values' size, 4 sigma of N(0, 1) over at least 30
// columns.
TEST(TurboCodec, TurningTheOutputBackIsTurningTheValuesBack) {
  for (const int dim : {64, 128, 256, 512}) {
    const Codec codec = cache::parse_kv_policy("turbo:8:4").codec;
    const auto draw = [&](int heads, int count, std::uint64_t salt) {
      return mx::random::normal({1, heads, count, dim}, mx::float32, mx::random::key(20261130 + salt));
    };
    const auto keys = cache::encode(codec, PlaneRole::keys, draw(2, 40, 1), mx::float32);
    const auto values = cache::encode(codec, PlaneRole::values, draw(2, 40, 2), mx::float32);
    const mx::array q = draw(4, 5, 3);
    AttendSpec spec;
    spec.scale = 1.0f / std::sqrt(static_cast<float>(dim));
    const auto run = [&](bool reads_only) {
      return cache::attend({codec, false, reads_only, q, keys, values, {.queries = 5, .context = 35}, spec});
    };
    EXPECT_LT(mx::max(mx::abs(run(false) - run(true))).item<float>(), 4 * 512 * 0x1p-24f) << dim;
  }
}

}  // namespace
}  // namespace godwit::oracle
