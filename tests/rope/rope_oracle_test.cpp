// Every scaling type of the rope factory against mlx-lm's own classes, bit for bit (make_rope.py).
#include <gtest/gtest.h>
#include <mlx/io.h>

#include <cstring>
#include <filesystem>

#include "base/json.h"
#include "base/mx_ops.h"
#include "models/dense.h"

namespace godwit {
namespace {

const std::filesystem::path kFolder = GODWIT_ROPE_FOLDER;

mx::array rotated(const Json& entry, const mx::array& x) {
  const checkpoint::Config config = checkpoint::parse_config(entry.at("config"), std::nullopt, "config.json");
  const nn::Rope rope(models::dense_rope(config));
  const int offset = entry.at("offset").get<int>(), tokens = x.shape(1);
  const mx::array packed = rope(mx::swapaxes(x, 0, 1), {&offset, 1}, {&tokens, 1});
  return mx::contiguous(mx::swapaxes(packed, 0, 1));
}

TEST(RopeFactory, RotatesAsMlxLmDoesBitForBit) {
  const auto tensors = mx::load_safetensors((kFolder / "expected.safetensors").string()).first;
  const Json cases = read_json_file(kFolder / "cases.json");
  ASSERT_GE(cases.size(), 200u);
  for (const Json& entry : cases) {
    const std::string name = entry.at("name").get<std::string>();
    mx::array got = rotated(entry, tensors.at(name + ".x"));
    mx::array wanted = tensors.at(name + ".y");
    mx::eval(got, wanted);
    ASSERT_EQ(got.dtype(), wanted.dtype()) << name;
    ASSERT_EQ(got.shape(), wanted.shape()) << name;
    EXPECT_EQ(std::memcmp(got.data<char>(), wanted.data<char>(), got.nbytes()), 0) << name;
  }
}

}  // namespace
}  // namespace godwit
