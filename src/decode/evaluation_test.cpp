#include "decode/evaluation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "decode/engine.h"
#include "support/scripted_model.h"

namespace godwit::decode {
namespace {

using testing::one_hot;
using testing::Script;
using Windows = std::vector<std::vector<int>>;

TEST(Windows, are_whole_and_a_rest_counts_only_where_it_is_all) {
  const std::vector<int> text = {1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(cut_windows(text, 3), (Windows{{1, 2, 3}, {4, 5, 6}}));
  EXPECT_EQ(cut_windows(text, 7), (Windows{text}));
  EXPECT_EQ(cut_windows(text, 8), (Windows{text}));
  EXPECT_EQ(cut_windows({}, 8), Windows());
}

TEST(Windows, each_begin_with_the_begin_token) {
  const std::vector<int> text = {1, 2, 3, 4, 5}, begin = {0};
  EXPECT_EQ(cut_windows(text, 3, begin), (Windows{{0, 1, 2}, {0, 3, 4}}));
  EXPECT_EQ(cut_windows(text, 9, begin), (Windows{{0, 1, 2, 3, 4, 5}}));
  EXPECT_EQ(cut_windows({}, 9, begin), Windows());
}

TEST(Policies, that_encode_do_so_on_some_layer) {
  const cache::Codec affine{.kind = cache::CodecKind::affine, .bits = 4, .group = 64};
  cache::KvPolicy config;
  config.per_layer = true;
  EXPECT_FALSE(encodes({}));
  EXPECT_FALSE(encodes(cache::parse_kv_policy("dense:bf16")));
  EXPECT_TRUE(encodes(cache::parse_kv_policy("affine:4")));
  EXPECT_FALSE(encodes(config));
  config.layers[3] = affine;
  EXPECT_TRUE(encodes(config));
}

// Runs on the engine thread, over a model whose logits after position p are those of `logits`.
struct ModelRun {
  std::vector<std::pair<int, int>> spans;  // of every forward: its first position and its tokens
  Script script;

  explicit ModelRun(std::function<std::vector<float>(int)> logits) {
    script.logits = std::move(logits);
    script.on_forward = [this](int first, int count) { spans.emplace_back(first, count); };
  }
  void operator()(const std::function<void(const models::ModelBundle&)>& work) {
    Engine engine([this] { return testing::scripted_bundle(script); }, Log());
    engine.run(work);
  }
};

TEST(CompareWindow, reads_a_prompt_at_once_and_compares_behind_every_later_token) {
  ModelRun run([](int position) { return one_hot(position); });
  Divergence divergence;
  run([&](const models::ModelBundle& bundle) {
    const auto other = bundle.make_store({});
    compare_window(bundle, *bundle.store, *other, std::vector<int>{5, 6, 7, 8, 9}, 3, divergence);
  });
  EXPECT_EQ(run.spans, (std::vector<std::pair<int, int>>{{0, 3}, {0, 3}, {3, 1}, {3, 1}, {4, 1}, {4, 1}}));
  EXPECT_EQ(divergence.positions(), 2);
  EXPECT_EQ(divergence.mean(), 0);  // one graph, one policy
  EXPECT_EQ(divergence.top1_agreement(), 1);
}

TEST(CompareWindow, without_a_prefill_compares_behind_the_first_token_too) {
  ModelRun run([](int) { return one_hot(1); });
  Divergence divergence;
  run([&](const models::ModelBundle& bundle) {
    compare_window(bundle, *bundle.store, *bundle.store, std::vector<int>{5, 6}, 0, divergence);
  });
  EXPECT_EQ(divergence.positions(), 2);
}

TEST(ScoreWindow, asks_for_each_token_but_the_first_and_reads_the_last_only_in_a_prefill) {
  // After position p the model says p + 1 with a probability of 9 / 24 and every other token with 1 / 24.
  const auto says_next = [](int position) {
    std::vector<float> row(16, 0.0f);
    row[static_cast<std::size_t>(position + 1)] = std::log(9.0f);
    return row;
  };
  const std::vector<int> right = {4, 1, 2, 3}, wrong = {4, 5, 5, 5};
  for (const std::size_t prefill : {0, 2, 4}) {
    ModelRun run(says_next);
    Perplexity perplexity, bad;
    run([&](const models::ModelBundle& bundle) {
      score_window(bundle, *bundle.store, right, prefill, perplexity);
      score_window(bundle, *bundle.store, wrong, prefill, bad);
    });
    EXPECT_EQ(perplexity.positions(), 3);
    EXPECT_NEAR(perplexity.value(), 24.0 / 9, 1e-6) << prefill;  // log 9 is rounded to f32
    EXPECT_NEAR(bad.value(), 24, 1e-5);
    run.spans.resize(run.spans.size() / 2);
    using Spans = std::vector<std::pair<int, int>>;
    EXPECT_EQ(run.spans, prefill == 4   ? Spans({{0, 4}})
                         : prefill == 2 ? Spans({{0, 2}, {2, 1}})
                                        : Spans({{0, 1}, {1, 1}, {2, 1}}));
  }
}

TEST(EngineRun, hands_back_what_the_work_throws_and_goes_on) {
  Engine engine([] { return testing::scripted_bundle({.logits = [](int) { return one_hot(3); }}); }, Log());
  EXPECT_THROW(engine.run([](const models::ModelBundle&) { throw std::runtime_error("no"); }), Error);
  int vocabulary = 0;
  engine.run([&](const models::ModelBundle& bundle) { vocabulary = bundle.vocabulary; });
  EXPECT_EQ(vocabulary, 16);
}

}  // namespace
}  // namespace godwit::decode
