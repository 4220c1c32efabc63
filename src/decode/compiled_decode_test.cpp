// Steps that a recorded graph serves against the same steps run by the graph's own code, bit for bit, over tiny
// checkpoints of every kind of layer.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "decode/prompt_cache.h"
#include "decode/row_runner.h"
#include "models/tiny_checkpoint.h"
#include "models/tiny_gemma4.h"
#include "models/tiny_hybrid.h"

namespace godwit::decode {
namespace {

using models::Compile;
using models::ModelBundle;
using models::ModelOptions;
using models::TinyCheckpoint;

class TinyLlama : public TinyCheckpoint {
 public:
  explicit TinyLlama(int dim = 32) {
    config["max_position_embeddings"] = 4096;
    set_head_dim(dim);
  }
  void each_layer(std::initializer_list<std::pair<const char*, int>> norms) {
    for (const std::string layer : {"0", "1"})
      for (const auto& [name, dims] : norms) add("model.layers." + layer + "." + name + ".weight", {dims});
  }
};

// Two heads over one of keys.
struct TinyQwen3 : TinyLlama {
  TinyQwen3() {
    config["model_type"] = "qwen3";
    config["tie_word_embeddings"] = true;
    config["num_key_value_heads"] = 1;
    each_layer({{"self_attn.q_norm", 32}, {"self_attn.k_norm", 32}});
    for (const std::string layer : {"0", "1"})
      for (const char* name : {"k", "v"}) add("model.layers." + layer + ".self_attn." + name + "_proj.weight", {32, 8});
  }
};

constexpr int kWindow = 8;

// The first layer slides, the second sees all.
struct TinyGemma3 : TinyLlama {
  TinyGemma3() {
    config["model_type"] = "gemma3_text";
    config["num_key_value_heads"] = 2;
    config["query_pre_attn_scalar"] = 32;
    config["sliding_window"] = kWindow;
    config["sliding_window_pattern"] = 2;
    each_layer({{"self_attn.q_norm", 32},
                {"self_attn.k_norm", 32},
                {"pre_feedforward_layernorm", 8},
                {"post_feedforward_layernorm", 8}});
  }
};

struct TinyExperts : TinyQwen3 {
  TinyExperts() {
    for (const std::string layer : {"0", "1"}) {
      const std::string path = "model.layers." + layer + ".mlp.";
      for (const char* name : {"gate", "up", "down"}) tensors.erase(path + name + "_proj.weight");
      add(path + "gate.weight", {4, 8});
      add(path + "switch_mlp.gate_proj.weight", {4, 16, 8});
      add(path + "switch_mlp.up_proj.weight", {4, 16, 8});
      add(path + "switch_mlp.down_proj.weight", {4, 8, 16});
    }
    config.update({{"model_type", "qwen3_moe"},
                   {"num_experts", 4},
                   {"num_experts_per_tok", 2},
                   {"moe_intermediate_size", 16},
                   {"decoder_sparse_step", 1},
                   {"mlp_only_layers", Json::array()},
                   {"norm_topk_prob", true},
                   {"rope_theta", 1e4}});
  }
};

struct TinySoftCapped : models::TinyGemma4 {
  TinySoftCapped() { config["final_logit_softcapping"] = 30.0; }
};



template <typename Checkpoint>
std::unique_ptr<ModelBundle> open_with(const Checkpoint& checkpoint, Compile compile, const std::string& kv = "dense",
                                       int start = 0) {
  return checkpoint.open([&](ModelOptions& options) {
    options.mode = NumericMode::reference;
    options.compile = compile;
    options.kv = cache::parse_kv_policy(kv);
    options.kv.start = start;
  });
}

std::vector<int> tokens_of(int count, int vocabulary) {
  std::vector<int> tokens;
  for (int i = 0; i < count; ++i) tokens.push_back((i * 7 + i / 5) % vocabulary);
  return tokens;
}

// The logits of `count` steps of one token behind `runner`'s.
std::vector<float> steps(RowRunner& runner, const ModelBundle& bundle, int count) {
  std::vector<float> all;
  const std::vector<int> tokens = tokens_of(runner.position() + count, bundle.vocabulary);
  for (int i = 0; i < count; ++i) {
    const std::vector<float> logits = runner.logits({&tokens[static_cast<std::size_t>(runner.position())], 1});
    all.insert(all.end(), logits.begin(), logits.end());
  }
  return all;
}

std::vector<float> answer(const ModelBundle& bundle, int prompt, int count) {
  RowRunner runner(bundle);
  if (prompt > 0) runner.store(tokens_of(prompt, bundle.vocabulary));
  return steps(runner, bundle, count);
}

testing::AssertionResult same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size() || a.empty()) return testing::AssertionFailure() << a.size() << " and " << b.size() << " values";
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i])) return testing::AssertionFailure() << "value " << i << " is " << a[i];
    if (std::memcmp(&a[i], &b[i], sizeof(float)) != 0)
      return testing::AssertionFailure() << "value " << i << ": " << a[i] << " and " << b[i];
  }
  return testing::AssertionSuccess();
}

struct Expected {
  std::size_t calls = 0;
  int traces = 1;
};

template <typename Checkpoint>
void expect_equal(const Checkpoint& checkpoint, Expected expected, const std::string& kv = "dense", int start = 0) {
  SCOPED_TRACE(kv);
  constexpr int kPrompt = 3, kSteps = 4 * kWindow;
  const auto eager = open_with(checkpoint, Compile::off, kv, start);
  const auto compiled = open_with(checkpoint, Compile::on, kv, start);
  ASSERT_EQ(eager->compiled, nullptr);
  EXPECT_TRUE(same_bits(answer(*compiled, kPrompt, kSteps), answer(*eager, kPrompt, kSteps)));
  const models::CompiledCounts& counts = compiled->compiled->counts();
  EXPECT_EQ(counts.steps, kSteps);
  EXPECT_EQ(counts.failures, 0);
  EXPECT_EQ(counts.traces, expected.traces);
  EXPECT_EQ(counts.calls, expected.calls);
  EXPECT_GT(counts.nodes, 30u);
}

TEST(CompiledDecode, OneGraphServesLayersThatSeeAll) {
  expect_equal(TinyLlama(), {});
  expect_equal(TinyQwen3(), {});
  expect_equal(TinyExperts(), {});
}

// The graph of the filling ring, then that of the full one.
TEST(CompiledDecode, AGraphServesARingThroughItsLaps) { expect_equal(TinyGemma3(), {.traces = 2}); }

TEST(CompiledDecode, KeysOfOtherLayersAndInputsByLayer) {
  expect_equal(models::TinyGemma4(), {.traces = 2});
  expect_equal(TinySoftCapped(), {.traces = 2});
}

TEST(CompiledDecode, RecurrentLayersAreCalledBetweenTheParts) { expect_equal(models::TinyHybrid(), {.calls = 1}); }

TEST(CompiledDecode, EveryCodec) {
  for (const char* kv : {"dense:bf16", "dense:f16", "affine:8:32", "affine:4:32"}) expect_equal(TinyQwen3(), {}, kv);
  expect_equal(TinyGemma3(), {.traces = 2}, "affine:8:32");
  expect_equal(TinyLlama(64), {.calls = 2}, "turbo:4:4");
}

// Dense until token 10, then encoded: each has its graph. In a ring, one more while it fills.
TEST(CompiledDecode, RowsThatTurnToACodec) {
  expect_equal(TinyQwen3(), {.traces = 2}, "affine:8:32", 10);
  expect_equal(TinyGemma3(), {.traces = 3}, "affine:8:32", 10);
}

TEST(CompiledDecode, OneTraceForAThousandSteps) {
  const TinyLlama checkpoint;
  const auto bundle = open_with(checkpoint, Compile::required);
  answer(*bundle, 2, 500);
  answer(*bundle, 400, 500);  // another row goes on with the same graph
  EXPECT_EQ(bundle->compiled->counts().steps, 1000);
  EXPECT_EQ(bundle->compiled->counts().traces, 1);
  EXPECT_EQ(bundle->compiled->counts().failures, 0);
}

// No forward has evaluated what the graph builds lazily (here the sums 1 + w of every norm) when the row comes from disk.
TEST(CompiledDecode, ARowThatWasRestoredEntersConstantsAsValues) {
  const TinyGemma3 checkpoint;
  const std::vector<int> prompt = tokens_of(80, 12);
  PromptCacheOptions options;
  options.use = PromptCacheOptions::Use::on;
  options.folder = checkpoint.folder / "cold";
  std::vector<float> expected;
  models::CompiledCounts warm;
  {
    const auto bundle = open_with(checkpoint, Compile::on);
    const auto kept = PromptCache::open(*bundle, options, Log());
    RowRunner runner(*bundle);
    runner.store(std::span(prompt).first(79));
    kept->keep_prompt(runner.row(), prompt);
    expected = steps(runner, *bundle, 20);
    warm = bundle->compiled->counts();
  }
  const auto bundle = open_with(checkpoint, Compile::on);
  const auto kept = PromptCache::open(*bundle, options, Log());
  std::optional<cache::Row> row = kept->find(prompt);
  ASSERT_TRUE(row);
  ASSERT_EQ(row->position(), 79);
  RowRunner runner(*bundle);
  runner.start_from(std::move(*row));
  EXPECT_TRUE(same_bits(steps(runner, *bundle, 20), expected));
  const models::CompiledCounts& cold = bundle->compiled->counts();
  EXPECT_EQ(cold.steps, 20);
  EXPECT_EQ(cold.nodes, warm.nodes);
  EXPECT_EQ(cold.constants, warm.constants);
}

// `failures` forms are given up, and the answer keeps its bits; the row goes on as if nothing had been.
template <typename Checkpoint>
void expect_recovery(const Checkpoint& checkpoint, std::size_t call, int failures, int served) {
  const auto eager = open_with(checkpoint, Compile::off);
  const auto compiled = open_with(checkpoint, Compile::on);
  RowRunner runner(*compiled);
  runner.store(tokens_of(3, compiled->vocabulary));
  std::vector<float> logits = steps(runner, *compiled, 4);
  ASSERT_EQ(compiled->compiled->counts().steps, 4);
  compiled->compiled->fail_at(call);
  const std::vector<float> rest = steps(runner, *compiled, 6);
  logits.insert(logits.end(), rest.begin(), rest.end());
  EXPECT_TRUE(same_bits(logits, answer(*eager, 3, 10)));
  EXPECT_EQ(compiled->compiled->counts().failures, failures);
  EXPECT_EQ(compiled->compiled->counts().steps, 4 + served);
}

TEST(CompiledDecode, AFailureInTheMiddleLeavesTheRowAsItWas) {
  expect_recovery(models::TinyHybrid(), 0, 1, 6);  // before the recurrent layer; then every layer is called
  expect_recovery(models::TinyHybrid(), 9, 1, 6);  // behind the last
  expect_recovery(TinyLlama(), 9, 1, 6);
  expect_recovery(TinyGemma3(), 9, 1, 6);  // as the ring fills: segmented, it stands in the graph
}

// Turbo is segmented from the start: there is nothing to fall back to but the graph's own code.
TEST(CompiledDecode, WithoutAnotherFormStepsRunAsEver) {
  const TinyLlama checkpoint(64);
  const auto eager = open_with(checkpoint, Compile::off, "turbo:4:4");
  const auto compiled = open_with(checkpoint, Compile::on, "turbo:4:4");
  RowRunner runner(*compiled);
  runner.store(tokens_of(3, 12));
  compiled->compiled->fail_at(1);  // the first layer has stored its span
  EXPECT_TRUE(same_bits(steps(runner, *compiled, 6), answer(*eager, 3, 6)));
  EXPECT_EQ(compiled->compiled->counts().failures, 1);
  EXPECT_EQ(compiled->compiled->counts().steps, 0);
}

// A base that follows the length is a number for each position.
TEST(CompiledDecode, WhatReadsAPositionAsANumberIsNotRecorded) {
  TinyLlama checkpoint;
  checkpoint.config["max_position_embeddings"] = 8;
  checkpoint.config["rope_scaling"] = {{"type", "dynamic"}, {"factor", 2.0}};
  const auto with_room = [&](Compile compile) {
    auto bundle = open_with(checkpoint, compile);
    bundle->context_length = 100;
    return bundle;
  };
  const auto eager = with_room(Compile::off), compiled = with_room(Compile::on);
  EXPECT_TRUE(same_bits(answer(*compiled, 3, 12), answer(*eager, 3, 12)));
  EXPECT_EQ(compiled->compiled->counts().steps, 0);
  EXPECT_EQ(compiled->compiled->counts().failures, 2);  // whole, segmented, and then no more

  const auto required = with_room(Compile::required);
  RowRunner runner(*required);
  runner.store(tokens_of(3, 12));
  const int token = 5;
  EXPECT_TRUE(models::names(models::message_of(ErrorCode::unsupported, [&] { runner.logits({&token, 1}); }),
                            {"required", "position"}));
  EXPECT_EQ(runner.position(), 3);
}

// Adapters will put other matrices in the place of a layer's.
TEST(CompiledDecode, ExchangedWeightsAreSeenWithoutANewTrace) {
  const TinyQwen3 checkpoint;
  const auto bundle = open_with(checkpoint, Compile::on);
  const std::vector<float> before = answer(*bundle, 3, 5);
  ASSERT_EQ(bundle->compiled->weights().size(), 14u);  // seven matrices in each of two layers
  for (const auto& [path, weight] : bundle->compiled->weights()) {
    SCOPED_TRACE(path);
    const mx::array own = weight->data;
    weight->data = mx::negative(own) + mx::array(0.25f);
    const std::vector<float> after = answer(*bundle, 3, 5);
    auto held = std::move(bundle->compiled);
    EXPECT_TRUE(same_bits(after, answer(*bundle, 3, 5)));
    bundle->compiled = std::move(held);
    EXPECT_FALSE(same_bits(after, before));
    weight->data = own;
  }
  EXPECT_TRUE(same_bits(answer(*bundle, 3, 5), before));
  EXPECT_EQ(bundle->compiled->counts().traces, 1);
  EXPECT_EQ(bundle->compiled->counts().failures, 0);
}

// Another dtype is another graph.
TEST(CompiledDecode, WeightsOfAnotherFormAreTracedAnew) {
  const TinyQwen3 checkpoint;
  const auto bundle = open_with(checkpoint, Compile::on);
  answer(*bundle, 3, 2);
  const auto& weight = bundle->compiled->weights().at(0).weight;
  weight->data = mx::astype(weight->data, mx::bfloat16);
  const std::vector<float> after = answer(*bundle, 3, 2);
  EXPECT_EQ(bundle->compiled->counts().traces, 2);
  EXPECT_EQ(bundle->compiled->counts().failures, 0);
  bundle->compiled.reset();
  EXPECT_TRUE(same_bits(after, answer(*bundle, 3, 2)));
}

TEST(CompiledDecode, GreedyStepsAreServedToo) {
  const TinyQwen3 checkpoint;
  const auto eager = open_with(checkpoint, Compile::off), compiled = open_with(checkpoint, Compile::on);
  RowRunner a(*eager), b(*compiled);
  int token = 3;
  for (int i = 0; i < 12; ++i) {  // the first by the graph's own code: there is no column yet
    const int next = a.greedy(token);
    EXPECT_EQ(b.greedy(token), next);
    token = next;
  }
  EXPECT_EQ(compiled->compiled->counts().steps, 11);
}

TEST(CompiledDecode, OptionsThatContradictEachOther) {
  const TinyLlama checkpoint;
  for (const Compile compile : {Compile::on, Compile::required})
    EXPECT_TRUE(models::names(models::message_of(ErrorCode::invalid_argument,
                                                 [&] {
                                                   checkpoint.open([&](ModelOptions& options) {
                                                     options.mode = NumericMode::native;
                                                     options.compile = compile;
                                                   });
                                                 }),
                              {"compiled", "native"}));
  EXPECT_EQ(open_with(checkpoint, Compile::automatic)->compiled == nullptr, mx::default_device() == mx::Device::cpu);
  const auto chosen = checkpoint.open([](ModelOptions& options) {
    options.mode.reset();
    options.compile = Compile::required;
  });
  EXPECT_EQ(chosen->mode, NumericMode::reference);
}

}  // namespace
}  // namespace godwit::decode
