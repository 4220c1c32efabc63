// Tiny models from prompt to token over encoded KV, in `reference` mode, against mlx-lm and mlx-optiq: logits
// of every forward plan bit for bit, and greedy tokens. make_models.py says what the cases are.
#include <gtest/gtest.h>
#include <mlx/version.h>

#include <set>

#include "oracle/golden_case.h"
#include "oracle/golden_run.h"

namespace godwit::oracle {
namespace {

constexpr const char* kGroups[] = {
    "llama_affine",       "llama_config", "gemma3_text_dense", "gemma3_text_affine",
    "gemma3_text_config", "long_affine",  "long_config",
};

cache::KvPolicy policy_of(const GoldenCase& golden) {
  const Json json = read_json_file(std::filesystem::path(GODWIT_KV_MODELS) / golden.name / "case.json");
  cache::KvPolicy policy = cache::parse_kv_policy(json.at("kv").get<std::string>());
  policy.start = json.at("start").get<int>();
  return policy;
}

class KvModels : public testing::TestWithParam<const char*> {};

TEST_P(KvModels, LogitsOfEveryForwardPlanEqualTheOraclesBitForBit) {
  for (const GoldenCase& golden : read_group(GODWIT_KV_MODELS, GetParam())) {
    SCOPED_TRACE(golden.name);
    const auto model = open_reference(golden.model, policy_of(golden));
    for (const Plan& plan : golden.plans) {
      SCOPED_TRACE(plan.name);
      EXPECT_TRUE(same_bits(run_plan(*model, golden.tokens, plan.spans), plan.logits));
    }
  }
}

TEST_P(KvModels, GreedyTokensEqualTheOracles) {
  for (const GoldenCase& golden : read_group(GODWIT_KV_MODELS, GetParam())) {
    SCOPED_TRACE(golden.name);
    ASSERT_GE(golden.greedy_tokens.size(), 8u);
    const int count = static_cast<int>(golden.greedy_tokens.size());
    EXPECT_EQ(greedy(golden.model, golden.greedy_prompt, count, policy_of(golden)).tokens,
              golden.greedy_tokens);
  }
}

INSTANTIATE_TEST_SUITE_P(Oracle, KvModels, testing::ValuesIn(kGroups),
                         [](const auto& instance) { return std::string(instance.param); });

TEST(KvModelManifest, EveryGroupThatTheOraclesMadeHasATest) {
  const Manifest manifest = read_manifest(GODWIT_KV_MODELS);
  std::set<std::string> made;
  for (const auto& [group, count] : manifest.groups.items()) made.insert(group);
  EXPECT_EQ(made, std::set<std::string>(std::begin(kGroups), std::end(kGroups)));
  EXPECT_EQ(manifest.mlx_version, mx::version());
}

}  // namespace
}  // namespace godwit::oracle
