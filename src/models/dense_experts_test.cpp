// Which published configs of experts get the lesser promise, by what they say of dtype and quantization.
#include "models/dense_experts.h"

#include "models/catalogue.h"
#include "models/profile_test_support.h"

namespace godwit::models {
namespace {

constexpr std::array<const char*, 4> kSparse = {"qwen3-30b-a3b", "qwen3.5-35b-a3b", "qwen3-next-80b-a3b",
                                                "gemma-4-26b-a4b"};

// The decoder's object of a nested config, or the config itself.
Json& inner(Json& config) { return config.contains("text_config") ? config["text_config"] : config; }

Json published(const std::string& name, const char* dtype) {
  Json config = read_json_file("tests/configs/" + name + ".json");
  for (Json* object : {&config, &inner(config)}) {
    object->erase("torch_dtype");
    object->erase("dtype");
  }
  if (dtype) config["torch_dtype"] = dtype;
  return config;
}

Profile profile_for(const Json& json) {
  const Catalogue catalogue = Catalogue::builtin();
  const auto config =
      checkpoint::parse_config(json, std::nullopt, "dir/config.json", catalogue.registry.dialects());
  return *catalogue.profiles.resolve(config, catalogue.capabilities).profile;
}

std::string promise_of(const Json& json) { return text_of(profile_for(json).reference); }

constexpr const char *kExact = "L1, mlx-lm, bit-exact", *kBounded = "L3, mlx-lm, bounded";

TEST(DenseExperts, OfOtherThanF32GetTheLesserPromise) {
  for (const std::string name : kSparse) {
    SCOPED_TRACE(name);
    EXPECT_EQ(promise_of(published(name, "float32")), kExact);
    for (const char* dtype : {"bfloat16", "float16", static_cast<const char*>(nullptr)})
      EXPECT_EQ(promise_of(published(name, dtype)), kBounded) << (dtype ? dtype : "no dtype");
    const Profile profile = profile_for(published(name, "bfloat16"));
    EXPECT_TRUE(profile.id.ends_with("-dense-experts")) << profile.id;
    EXPECT_TRUE(names(profile.reference.figures, {"CPU", "half a unit"}));
  }
}

TEST(DenseExperts, QuantizedOnesHaveTheBitsUnlessTheFileLeavesThemDense) {
  for (const std::string name : kSparse) {
    SCOPED_TRACE(name);
    Json config = published(name, "bfloat16");
    config["quantization"] = {{"group_size", 64}, {"bits", 4}};
    EXPECT_EQ(promise_of(config), kExact);
    config["quantization"]["model.layers.0.mlp.gate"] = false;
    EXPECT_EQ(promise_of(config), kExact);
    config["quantization"]["model.layers.0.mlp.switch_mlp.up_proj"] = false;
    EXPECT_EQ(promise_of(config), kBounded);
  }
}

TEST(DenseExperts, ModelsWithoutExpertsAreNotMeant) {
  for (const std::string name : {"qwen3.5-4b", "gemma-4-12b", "gemma-4-e4b"})
    EXPECT_EQ(promise_of(published(name, "bfloat16")), kExact) << name;
  Json config = published("gemma-4-26b-a4b", "bfloat16");
  inner(config).erase("enable_moe_block");  // mlx-lm's default is false
  EXPECT_EQ(promise_of(config), kExact);
}

}  // namespace
}  // namespace godwit::models
