#include "models/model_bundle.h"

#include <limits>

#include "models/tiny_checkpoint.h"

namespace godwit::models {
namespace {

// A tensor file that no reader accepts: an error about it would show that it was opened.
TinyCheckpoint with_spoiled_tensors() {
  TinyCheckpoint checkpoint;
  checkpoint.tensors.clear();
  checkpoint.write("model.safetensors", "spoiled");
  return checkpoint;
}

TEST(OpeningAModel, YieldsAGraphThatRuns) {
  const TinyCheckpoint checkpoint;
  const auto model = checkpoint.open();
  EXPECT_EQ(model->vocabulary, 12);
  EXPECT_EQ(model->context_length, 64);
  cache::Row row = model->store->create();
  const cache::RowSpan span{&row, 3};
  cache::Step step = model->store->plan({&span, 1});
  const mx::array logits = model->graph->logits(model->graph->hidden(mx::array({1, 2, 3}), step));
  EXPECT_EQ(logits.shape(), (mx::Shape{3, 12}));
  EXPECT_TRUE(mx::all(mx::isfinite(logits)).item<bool>());
  step.publish();
  EXPECT_EQ(row.position(), 3);
}

TEST(OpeningAModel, AnUnknownTypeIsRefusedBeforeAnyTensorFileIsOpened) {
  TinyCheckpoint checkpoint = with_spoiled_tensors();
  checkpoint.config = {{"model_type", "hyena"}};  // not one key that a known family needs
  EXPECT_TRUE(
      names(message_of(ErrorCode::unsupported, [&] { checkpoint.open(); }), {"hyena", "llama", "qwen3"}));
}

TEST(OpeningAModel, ConfigsThatTheGraphCannotServeAreRefusedBeforeAnyTensorFileIsOpened) {
  struct Case {
    const char* key;
    Json value;
    ErrorCode code;
    const char* word;
  };
  const Case cases[] = {
      {"rope_scaling", {{"rope_type", "spiral"}}, ErrorCode::unsupported, "spiral"},
      {"hidden_act", "gelu", ErrorCode::unsupported, "gelu"},
      {"rope_scaling", {{"type", "linear"}}, ErrorCode::corrupt_file, "factor"},
      {"layer_types", {"full_attention", "linear_attention"}, ErrorCode::unsupported, "linear_attention"},
      {"layer_types", {"full_attention", "sliding_attention"}, ErrorCode::corrupt_file, "sliding_window"},
      {"hidden_size", nullptr, ErrorCode::corrupt_file, "hidden_size"},
      {"model_type", "qwen3", ErrorCode::corrupt_file, "tie_word_embeddings"},
  };
  for (const Case& c : cases) {
    TinyCheckpoint checkpoint = with_spoiled_tensors();
    checkpoint.config[c.key] = c.value;
    EXPECT_TRUE(names(message_of(c.code, [&] { checkpoint.open(); }), {"config.json", c.word})) << c.key;
  }
  TinyCheckpoint qwen3 = with_spoiled_tensors();
  qwen3.config["model_type"] = "qwen3";
  qwen3.config["tie_word_embeddings"] = true;
  EXPECT_TRUE(names(message_of(ErrorCode::corrupt_file, [&] { qwen3.open(); }), {"head_dim"}));
  message_of(ErrorCode::corrupt_file, [] { with_spoiled_tensors().open(); });  // the bait is one
}

TEST(OpeningAModel, OptionsThatCannotBeServedAreRefusedFirst) {
  const TinyCheckpoint checkpoint = with_spoiled_tensors();
  const auto refused = [&](ErrorCode code, const std::function<void(ModelOptions&)>& change) {
    return message_of(code, [&] { checkpoint.open(change); });
  };
  for (const int context : {0, -5})
    EXPECT_TRUE(names(refused(ErrorCode::invalid_argument, [&](auto& o) { o.context_length = context; }),
                      {std::to_string(context)}));
}

TEST(OpeningAModel, NativeModeNamesTheTensorItCannotMultiplyByAndAutoTakesReference) {
  TinyCheckpoint checkpoint;
  checkpoint.set_head_dim(16);
  EXPECT_TRUE(names(message_of(ErrorCode::unsupported,
                               [&] { checkpoint.open([](auto& o) { o.mode = NumericMode::native; }); }),
                    {"layers.0.self_attn.q_proj.weight", "F32", "native"}));
  const auto model = checkpoint.open([](auto& o) { o.mode.reset(); });
  EXPECT_EQ(model->mode, NumericMode::reference);
  EXPECT_EQ(model->executor, nullptr);
}

TEST(OpeningAModel, TheContextIsThatOfTheModelOrTheLowerOneAskedFor) {
  TinyCheckpoint checkpoint;
  EXPECT_EQ(checkpoint.open([](auto& o) { o.context_length = 10; })->context_length, 10);
  EXPECT_EQ(checkpoint.open([](auto& o) { o.context_length = 1000; })->context_length, 64);
  checkpoint.config.erase("max_position_embeddings");
  EXPECT_EQ(checkpoint.open()->context_length, std::numeric_limits<int>::max());
  EXPECT_EQ(checkpoint.open([](auto& o) { o.context_length = 1000; })->context_length, 1000);
}

TEST(OpeningAModel, AllMissingAndAllUnusedTensorsAreNamedTogether) {
  TinyCheckpoint checkpoint;
  checkpoint.tensors.erase("model.norm.weight");
  checkpoint.tensors.erase("model.layers.1.mlp.up_proj.weight");
  checkpoint.add("model.layers.1.self_attn.q_norm.weight", {4});
  checkpoint.add("model.layers.2.input_layernorm.weight", {8});
  EXPECT_TRUE(names(message_of(ErrorCode::corrupt_file, [&] { checkpoint.open(); }),
                    {"model.norm.weight", "model.layers.1.mlp.up_proj.weight",
                     "model.layers.1.self_attn.q_norm.weight", "model.layers.2.input_layernorm.weight"}));
}

TEST(OpeningAModel, TensorsThatTheFamilyDropsAreNoErrorAndWrongShapesAre) {
  TinyCheckpoint checkpoint;
  checkpoint.add("model.layers.0.self_attn.rotary_emb.inv_freq", {2});
  checkpoint.add("lm_head.weight", {12, 8});  // tied: the family leaves it out
  checkpoint.open();
  checkpoint.add("model.norm.weight", {9});
  EXPECT_TRUE(names(message_of(ErrorCode::corrupt_file, [&] { checkpoint.open(); }),
                    {"model.norm.weight", "9", "8"}));
}

TEST(OpeningAModel, AnUntiedHeadIsItsOwnMatrix) {
  TinyCheckpoint tied, untied;
  untied.config["tie_word_embeddings"] = false;
  EXPECT_TRUE(names(message_of(ErrorCode::corrupt_file, [&] { untied.open(); }), {"lm_head.weight"}));
  untied.add("lm_head.weight", {12, 8});
  const mx::array x = mx::ones({1, 8});
  EXPECT_FALSE(mx::array_equal(tied.open()->graph->logits(x), untied.open()->graph->logits(x)).item<bool>());
}

}  // namespace
}  // namespace godwit::models
