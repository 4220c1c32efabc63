// Layers that read another one's keys and values, in `reference` mode: a fork, a hit and a row that was cut
// back give the bits of a row that was always alone.
#include <gtest/gtest.h>

#include "cache/prefix_cache.h"
#include "decode/row_runner.h"
#include "models/tiny_gemma4.h"
#include "one_answer/forward.h"
#include "one_answer/tiny_gguf.h"

namespace godwit::one_answer {
namespace {

// Past the window of 24, the start in the middle of a chunk, and steps of one token.
const std::vector<int> kPlan = {30, 17, 1, 1, 1, 1, 12, 1, 1, 1, 1, 1};
constexpr std::size_t kTokens = 68;

struct Case {
  const char* name;
  const char* kv;
  int start;
};

class SharedKeys : public testing::TestWithParam<Case> {
 protected:
  SharedKeys() : tokens_(random_tokens(kTokens, 11)) { open(); }
  void open() {
    model_ = checkpoint_.open();
    cache::KvPolicy policy = cache::parse_kv_policy(GetParam().kv);
    policy.start = GetParam().start;
    store_ = model_->make_store(policy);
  }
  // Spans [first, last) of the plan; `after` is called behind each.
  template <typename After>
  Logits run(decode::RowRunner& runner, std::size_t first, std::size_t last, After&& after) {
    Logits all;
    for (std::size_t i = first; i < last; ++i) {
      const auto at = static_cast<std::size_t>(runner.position());
      const Logits some = runner.logits(std::span(tokens_).subspan(at, static_cast<std::size_t>(kPlan[i])));
      all.insert(all.end(), some.begin(), some.end());
      after(runner);
    }
    return all;
  }
  Logits run(decode::RowRunner& runner, std::size_t first) {
    return run(runner, first, kPlan.size(), [](const decode::RowRunner&) {});
  }
  Logits alone() {
    decode::RowRunner runner(*model_, *store_);
    return run(runner, 0);
  }
  // The rest of the plan on `row`, which holds `at` tokens, the first `span` spans.
  void expect_goes_on(cache::Row row, std::size_t span, std::size_t at, const Logits& wanted) {
    ASSERT_EQ(row.position(), static_cast<int>(at));
    decode::RowRunner runner(*model_, *store_);
    runner.start_from(std::move(row));
    EXPECT_TRUE(same_bits(run(runner, span), rows_of(wanted, at, kTokens - at)));
  }

  models::TinyGemma4 checkpoint_;
  std::vector<int> tokens_;
  std::unique_ptr<models::ModelBundle> model_;
  std::unique_ptr<cache::StateStore> store_;
};

TEST_P(SharedKeys, AForkGoesOnAsTheRowItself) {
  const Logits wanted = alone();
  std::vector<cache::Row> forks;
  decode::RowRunner runner(*model_, *store_);
  const auto fork = [&](const decode::RowRunner& r) { forks.push_back(r.row().fork(r.position())); };
  EXPECT_TRUE(same_bits(run(runner, 0, kPlan.size(), fork), wanted)) << "forking changed it";
  std::size_t at = 0;
  for (std::size_t i = 0; i + 1 < kPlan.size(); ++i) {
    at += static_cast<std::size_t>(kPlan[i]);
    SCOPED_TRACE(at);
    expect_goes_on(std::move(forks[i]), i + 1, at, wanted);
  }
}

TEST_P(SharedKeys, AHitGoesOnAsIfNothingHadBeenKept) {
  const Logits wanted = alone();
  cache::PrefixCache prefixes(*store_, {.identity = "one"});
  decode::RowRunner runner(*model_, *store_);
  run(runner, 0, kPlan.size(), [&](const decode::RowRunner& r) {
    prefixes.insert(r.row(), std::span(tokens_).first(static_cast<std::size_t>(r.position())), "plan");
  });
  std::size_t at = 0;
  for (std::size_t i = 0; i + 1 < kPlan.size(); ++i) {
    at += static_cast<std::size_t>(kPlan[i]);
    SCOPED_TRACE(at);
    std::optional<cache::Row> row = prefixes.find(std::span(tokens_).first(at + 1), "plan");
    ASSERT_TRUE(row.has_value());
    expect_goes_on(std::move(*row), i + 1, at, wanted);
  }
}

// Under a window that the row has not filled: behind that the oracle's columns stand in another order, and so
// do sums.
TEST_P(SharedKeys, ARowThatIsCutBackGoesOnAsIfItHadStoppedThere) {
  checkpoint_.config["sliding_window"] = static_cast<int>(kTokens) + 8;
  store_.reset();
  open();
  const Logits wanted = alone();
  std::size_t at = 0;
  int cut = 0;
  for (std::size_t i = 0; i + 1 < kPlan.size(); ++i) {
    at += static_cast<std::size_t>(kPlan[i]);
    SCOPED_TRACE(at);
    decode::RowRunner runner(*model_, *store_);
    run(runner, 0, i + 1, [](const decode::RowRunner&) {});
    runner.logits(random_tokens(3, 100 + static_cast<unsigned>(at)));  // another continuation, taken back
    cache::Row row = runner.row().fork(runner.position());
    if (row.minimum_reusable_length() > static_cast<int>(at)) continue;  // encoded meanwhile
    row.truncate(static_cast<int>(at));
    ++cut;
    expect_goes_on(std::move(row), i + 1, at, wanted);
  }
  EXPECT_GE(cut, static_cast<int>(kPlan.size()) - 3);
}

constexpr Case kCases[] = {
    {"dense", "dense", 0}, {"affine", "affine:8:32", 0}, {"affine_late", "affine:4:32", 33}};
INSTANTIATE_TEST_SUITE_P(Policies, SharedKeys, testing::ValuesIn(kCases),
                         [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace godwit::one_answer
