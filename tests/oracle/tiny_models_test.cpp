// Tiny random checkpoints and GGUF files: every family, element type and weight format against mlx-lm, bit
// for bit. tests/oracle/cases.py and gguf_cases.py say what the cases are; one group is one ctest case.
#include <gtest/gtest.h>
#include <mlx/version.h>

#include <set>

#include "oracle/golden_case.h"
#include "oracle/golden_run.h"

namespace godwit::oracle {
namespace {

constexpr const char* kGroups[] = {
    "llama_dense",       "llama_q4",       "llama_q8",       "llama_mixed",       "llama_inferred",
    "llama_mxfp4",       "llama_nvfp4",    "llama_gguf",     "qwen2_dense",       "qwen2_q4",
    "qwen2_q8",          "qwen2_mixed",    "qwen2_gguf",     "qwen3_dense",       "qwen3_q4",
    "qwen3_q8",          "qwen3_mixed",    "qwen3_mxfp4",    "qwen3_mxfp8",       "qwen3_gguf",
    "gemma3_text_dense", "gemma3_text_q4", "gemma3_text_q8", "gemma3_text_mixed", "gemma3_text_mxfp4",
    "gemma3_text_gguf",
};

class TinyModels : public testing::TestWithParam<const char*> {};

TEST_P(TinyModels, LogitsOfEveryForwardPlanEqualThoseOfMlxLmBitForBit) {
  for (const GoldenCase& golden : read_group(GODWIT_GOLDEN_FOLDER, GetParam())) {
    SCOPED_TRACE(golden.name);
    const auto model = open_reference(golden.model);
    ASSERT_FALSE(golden.plans.empty());
    for (const Plan& plan : golden.plans) {
      SCOPED_TRACE(plan.name);
      EXPECT_TRUE(same_bits(run_plan(*model, golden.tokens, plan.spans), plan.logits));
    }
  }
}

TEST_P(TinyModels, GreedyTokensEqualThoseOfMlxLm) {
  for (const GoldenCase& golden : read_group(GODWIT_GOLDEN_FOLDER, GetParam())) {
    SCOPED_TRACE(golden.name);
    ASSERT_GE(golden.greedy_tokens.size(), 12u);
    const int count = static_cast<int>(golden.greedy_tokens.size());
    EXPECT_EQ(greedy(golden.model, golden.greedy_prompt, count).tokens, golden.greedy_tokens);
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, TinyModels, testing::ValuesIn(kGroups),
                         [](const auto& instance) { return std::string(instance.param); });

TEST(GoldenManifest, EveryGroupThatTheOracleMadeHasATest) {
  const Manifest manifest = read_manifest(GODWIT_GOLDEN_FOLDER);
  std::set<std::string> made;
  for (const auto& [group, count] : manifest.groups.items()) made.insert(group);
  EXPECT_EQ(made, std::set<std::string>(std::begin(kGroups), std::end(kGroups)));
}

// Another MLX rounds differently: equal bits are promised for the same release only.
TEST(GoldenManifest, TheOracleComputedWithTheMlxReleaseThatWeLink) {
  EXPECT_EQ(read_manifest(GODWIT_GOLDEN_FOLDER).mlx_version, mx::version());
}

}  // namespace
}  // namespace godwit::oracle
