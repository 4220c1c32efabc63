// The tiny random checkpoints and GGUF files of one family against mlx-lm, bit for bit: golden_test FOLDER,
// where FOLDER is what make_goldens.py wrote. families/<family>.py says what the cases are.
#include <gtest/gtest.h>
#include <mlx/version.h>

#include <iostream>

#include "oracle/golden_case.h"
#include "oracle/golden_run.h"
#include "support/hang_report.h"

namespace godwit::oracle {
namespace {

class LogitsOfEveryPlan : public testing::Test {
 public:
  explicit LogitsOfEveryPlan(std::filesystem::path folder) : folder_(std::move(folder)) {}
  void TestBody() override {
    const GoldenCase golden = read_case(folder_);
    ASSERT_FALSE(golden.plans.empty());
    compare(golden, golden.model);
    for (const std::filesystem::path& twin : golden.twins) compare(golden, twin);
  }

 private:
  static void compare(const GoldenCase& golden, const std::filesystem::path& file) {
    SCOPED_TRACE(file);
    const auto model = open_reference(file);
    for (const Plan& plan : golden.plans) {
      SCOPED_TRACE(plan.name);
      EXPECT_TRUE(same_bits(run_plan(*model, golden.tokens, plan.spans), plan.logits));
    }
    compare_compiled(golden, *model);
  }

  // Single tokens again, by graphs that are recorded once: before and behind a block, in rings of every form.
  static void compare_compiled(const GoldenCase& golden, models::ModelBundle& model) {
    model.compile(/*is_required=*/false, Log());
    for (const Plan& plan : golden.plans) {
      if (plan.name != "turns" && plan.name != "short_first") continue;
      SCOPED_TRACE("compiled, " + plan.name);
      EXPECT_TRUE(same_bits(run_plan(model, golden.tokens, plan.spans), plan.logits));
    }
    const models::CompiledCounts& counts = model.compiled->counts();
    EXPECT_TRUE(counts.steps > 0 || counts.failures > 0) << "no plan has single tokens";
    if (counts.failures > 0) std::cout << golden.name << ": " << counts.failures << " forms could not be recorded\n";
  }

  std::filesystem::path folder_;
};

class GreedyTokens : public testing::Test {
 public:
  explicit GreedyTokens(std::filesystem::path folder) : folder_(std::move(folder)) {}
  void TestBody() override {
    const GoldenCase golden = read_case(folder_);
    ASSERT_GE(golden.greedy_tokens.size(), 12u);
    const int count = static_cast<int>(golden.greedy_tokens.size());
    EXPECT_EQ(greedy(golden.model, golden.greedy_prompt, count).tokens, golden.greedy_tokens);
  }

 private:
  std::filesystem::path folder_;
};

// Another MLX rounds differently: equal bits are promised for the same release only.
class OracleRelease : public testing::Test {
 public:
  explicit OracleRelease(std::string version) : version_(std::move(version)) {}
  void TestBody() override { EXPECT_EQ(version_, mx::version()); }

 private:
  std::string version_;
};

template <typename Case, typename... Arguments>
void add(const char* suite, const std::string& name, Arguments... arguments) {
  testing::RegisterTest(suite, name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                        [=]() -> testing::Test* { return new Case(arguments...); });
}

void add_cases(const std::filesystem::path& folder) {
  const Manifest manifest = read_manifest(folder);
  add<OracleRelease>("Oracle", "ComputedWithTheMlxReleaseThatWeLink", manifest.mlx_version);
  for (const std::string& name : manifest.cases) {
    add<LogitsOfEveryPlan>("Logits", name, folder / name);
    add<GreedyTokens>("Greedy", name, folder / name);
  }
  if (manifest.cases.empty()) throw std::runtime_error("the manifest lists no case");
}

}  // namespace
}  // namespace godwit::oracle

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc != 2) {
    std::cerr << "usage: golden_test FOLDER\n";
    return 2;
  }
  try {
    godwit::oracle::add_cases(argv[1]);
  } catch (const std::exception& error) {
    std::cerr << argv[1] << ": " << error.what() << "\n";
    return 1;
  }
  godwit::testing_support::report_hangs();
  return RUN_ALL_TESTS();
}
