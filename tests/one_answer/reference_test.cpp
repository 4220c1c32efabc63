// `reference` mode: a hit in memory or on disk goes on as the same chunk plan would have.
#include <gtest/gtest.h>

#include "cache/prefix_cache.h"
#include "decode/row_runner.h"
#include "one_answer/child.h"
#include "one_answer/forward.h"
#include "one_answer/tiny_gguf.h"

namespace godwit::one_answer {
namespace {

// Past the window, the start in the middle of a chunk, and steps of one token.
const std::vector<int> kPlan = {60, 50, 1, 1, 1, 1, 1, 25, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
constexpr std::size_t kTokens = 150;

struct Case {
  const char* name;
  bool slides;
  const char* kv;
  int start;
};

class SamePlan : public testing::TestWithParam<Case> {
 protected:
  SamePlan() : tokens_(random_tokens(kTokens, 5)) {
    write_model(folder_ / "model.gguf", GetParam().slides);
    model_ = open_model(folder_ / "model.gguf", NumericMode::reference);
    cache::KvPolicy policy = cache::parse_kv_policy(GetParam().kv);
    policy.start = GetParam().start;
    store_ = model_->make_store(policy);
  }
  // Spans [first, end) of the plan; `after` is called behind each.
  template <typename After>
  Logits run(decode::RowRunner& runner, std::size_t first, After&& after) {
    Logits all;
    for (std::size_t i = first; i < kPlan.size(); ++i) {
      const auto at = static_cast<std::size_t>(runner.position());
      const Logits some = runner.logits(std::span(tokens_).subspan(at, static_cast<std::size_t>(kPlan[i])));
      all.insert(all.end(), some.begin(), some.end());
      after(runner);
    }
    return all;
  }
  // Runs the plan and keeps the row behind each span of it.
  Logits run_and_keep(cache::PrefixCache& prefixes) {
    decode::RowRunner runner(*model_, *store_);
    return run(runner, 0, [&](const decode::RowRunner& r) {
      prefixes.insert(r.row(), std::span(tokens_).first(static_cast<std::size_t>(r.position())), kPlanned);
    });
  }

  Folder folder_;
  std::vector<int> tokens_;
  std::unique_ptr<models::ModelBundle> model_;
  std::unique_ptr<cache::StateStore> store_;
};

TEST_P(SamePlan, AHitInMemoryGoesOnAsIfNothingHadBeenKept) {
  decode::RowRunner straight(*model_, *store_);
  const Logits wanted = run(straight, 0, [](const decode::RowRunner&) {});
  cache::PrefixCache prefixes(*store_, {.identity = kIdentity});
  EXPECT_TRUE(same_bits(run_and_keep(prefixes), wanted)) << "keeping changed it";
  for (const bool again : {false, true}) {
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < kPlan.size(); ++i) {
      at += static_cast<std::size_t>(kPlan[i]);
      if (again && i % 4 != 0) continue;  // the same few hits once more
      SCOPED_TRACE(testing::Message() << "behind " << at << (again ? ", again" : ""));
      std::optional<cache::Row> row = prefixes.find(std::span(tokens_).first(at + 1), kPlanned);
      ASSERT_TRUE(row.has_value());
      ASSERT_EQ(row->position(), static_cast<int>(at));
      decode::RowRunner runner(*model_, *store_);
      runner.start_from(std::move(*row));
      const Logits got = run(runner, i + 1, [](const decode::RowRunner&) {});
      ASSERT_TRUE(same_bits(got, rows_of(wanted, at, kTokens - at)));
    }
  }
}

TEST_P(SamePlan, AHitOnTheDiskOfAnotherProcessToo) {
  Logits wanted;
  {
    cache::ColdTier cold({.folder = folder_ / "cold", .hooks = {}}, Log());
    cache::PrefixCache prefixes(*store_, {.identity = kIdentity}, &cold);
    wanted = run_and_keep(prefixes);
  }
  std::vector<Question> questions;
  for (const int at : {60, 110, 113, 140, 149})
    questions.push_back({GetParam().kv, GetParam().start, tokens_, at + 1, kPlan});
  const auto findings =
      ask_another_process(*model_, folder_ / "cold", questions);
  for (std::size_t i = 0; i < questions.size(); ++i) {
    SCOPED_TRACE(questions[i].length);
    const auto at = static_cast<std::size_t>(findings[i].position);
    ASSERT_EQ(findings[i].position, questions[i].length - 1);
    EXPECT_TRUE(same_bits(findings[i].logits, rows_of(wanted, at, kTokens - at)));
  }
}

constexpr Case kCases[] = {
    {"full_dense", false, "dense", 0},          {"full_affine", false, "affine:4:64", 0},
    {"full_affine_late", false, "affine:8:32", 77},  {"full_turbo", false, "turbo:8:4", 0},
    {"full_turbo_late", false, "turbo:4:3", 77}, {"full_parity", false, "turbo:8:3:parity", 0},
    {"sliding_dense", true, "dense", 0},        {"sliding_affine", true, "affine:4:64", 0},
    {"sliding_affine_late", true, "affine:8:32", 77}};
INSTANTIATE_TEST_SUITE_P(Policies, SamePlan, testing::ValuesIn(kCases),
                         [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace godwit::one_answer
