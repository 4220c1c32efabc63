// Gated delta layers against mlx-lm's own layer, bit for bit (make_recurrent.py), and in native mode against
// double precision within the bounds that exact.py derives.
#include <gtest/gtest.h>
#include <mlx/io.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <unordered_map>

#include "base/json.h"
#include "base/mx_ops.h"
#include "cache/gated_delta.h"
#include "cache/recurrent_test_support.h"

namespace godwit::cache {
namespace {

const std::filesystem::path kFolder = GODWIT_RECURRENT_FOLDER;
using Tensors = std::unordered_map<std::string, mx::array>;

RecurrentNeed need_of(const Json& entry) {
  RecurrentNeed need;
  need.key_heads = entry.at("key_heads").get<int>();
  need.value_heads = entry.at("value_heads").get<int>();
  need.key_dim = entry.at("key_dim").get<int>();
  need.value_dim = entry.at("value_dim").get<int>();
  need.kernel = entry.at("kernel").get<int>();
  need.channels = 2 * need.key_heads * need.key_dim + need.value_heads * need.value_dim;
  return need;
}

RecurrentInputs inputs_of(const Tensors& tensors, const std::string& name) {
  const auto at = [&](const char* key) { return tensors.at(name + "." + key); };
  return {.mixed = at("mixed"),
          .conv_weight = at("conv_weight"),
          .decay = at("a"),
          .update = at("b"),
          .a_log = at("a_log"),
          .dt_bias = at("dt_bias")};
}

void expect_same_bits(mx::array got, mx::array wanted, const std::string& what) {
  got = mx::contiguous(got);
  mx::eval(got, wanted);
  ASSERT_EQ(got.dtype(), wanted.dtype()) << what;
  ASSERT_EQ(got.shape(), wanted.shape()) << what;
  EXPECT_EQ(std::memcmp(got.data<char>(), wanted.data<char>(), got.nbytes()), 0) << what;
}

TEST(RecurrentOracle, ReferenceEqualsMlxLmBitForBitForPrefillsAndSteps) {
  const Tensors tensors = mx::load_safetensors((kFolder / "expected.safetensors").string()).first;
  const Json cases = read_json_file(kFolder / "cases.json");
  ASSERT_EQ(cases.size(), 60u);
  for (const Json& entry : cases) {
    const std::string name = entry.at("name").get<std::string>();
    const RecurrentInputs inputs = inputs_of(tensors, name);
    RecurrentRef memory;
    int begin = 0, index = 0;
    for (const int tokens : entry.at("spans").get<std::vector<int>>()) {
      const GatedDeltaResult got = gated_delta(need_of(entry), memory, slice_tokens(inputs, begin, begin + tokens));
      const std::string span = "." + std::to_string(index++);
      expect_same_bits(got.out, tensors.at(name + ".out" + span), name + ".out" + span);
      expect_same_bits(got.state, tensors.at(name + ".state" + span), name + ".state" + span);
      expect_same_bits(got.tail, tensors.at(name + ".tail" + span), name + ".tail" + span);
      memory = std::make_shared<const RecurrentMemory>(RecurrentMemory{got.state, got.tail});
      begin += tokens;
    }
  }
}

// `exact` was rounded to f32, which adds half a unit of its size.
void expect_within(const mx::array& got, mx::array exact, mx::array bound, const std::string& what) {
  mx::eval(exact, bound);
  ASSERT_EQ(got.shape(), exact.shape()) << what;
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double want = exact.data<float>()[i],
                 allowed = bound.data<float>()[i] + std::abs(want) * 0x1p-24 + 1e-30;
    worst = std::max(worst, std::abs(got.data<float>()[i] - want) / allowed);
  }
  EXPECT_LE(worst, 1.0) << what;
  testing::Test::RecordProperty(what, std::to_string(worst));
}

TEST(RecurrentOracle, NativeIsWithinTheDerivedBoundOfDoublePrecision) {
  const Tensors tensors = mx::load_safetensors((kFolder / "expected.safetensors").string()).first;
  const Tensors exact = mx::load_safetensors((kFolder / "exact.safetensors").string()).first;
  int compared = 0;
  for (const Json& entry : read_json_file(kFolder / "cases.json")) {
    const std::string name = entry.at("name").get<std::string>();
    if (!exact.count(name + ".out")) continue;
    const RecurrentInputs inputs = inputs_of(tensors, name);
    const Forward got = forward(need_of(entry), inputs, {inputs.mixed.shape(0)}, NumericMode::native);
    expect_within(got.out, exact.at(name + ".out"), exact.at(name + ".out_bound"), name + ".out");
    expect_within(got.memory->state, exact.at(name + ".state"), exact.at(name + ".state_bound"), name + ".state");
    ++compared;
  }
  EXPECT_EQ(compared, 4);
}

}  // namespace
}  // namespace godwit::cache
