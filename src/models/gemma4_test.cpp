// What the goldens of Gemma 4 cannot show: refusals, what state its layers need, and encoded keys that layers
// share.
#include <cmath>

#include "checkpoint/config.h"
#include "models/end_tokens.h"
#include "models/families.h"
#include "models/registry.h"
#include "models/tiny_gemma4.h"

namespace godwit::models {
namespace {

checkpoint::Config parsed(const Json& config) {
  return checkpoint::parse_config(config, std::nullopt, "dir/config.json", Registry::builtin().dialects());
}

std::string refused(TinyGemma4& checkpoint, ErrorCode code) {
  return message_of(code, [&] { checkpoint.open([](ModelOptions& o) { o.mode = NumericMode::reference; }); });
}

TEST(Gemma4, StateIsThatOfTheLayersThatOwnKeysEachBySizesOfItsType) {
  TinyGemma4 checkpoint;
  checkpoint.config["attention_k_eq_v"] = true;
  checkpoint.config["num_global_key_value_heads"] = 1;
  const cache::StateNeeds needs = gemma4.needs(parsed(checkpoint.config));
  ASSERT_EQ(needs.size(), 4u);
  for (std::size_t i = 0; i < needs.size(); ++i) {
    const bool slides = TinyGemma4::slides(static_cast<int>(i));
    EXPECT_EQ(needs[i].window == cache::WindowKind::sliding, slides);
    EXPECT_EQ(needs[i].window_size, slides ? TinyGemma4::kWindow : 0);
    EXPECT_EQ(needs[i].key_dim, slides ? 32 : 64);
    EXPECT_EQ(needs[i].value_dim, needs[i].key_dim);
    EXPECT_EQ(needs[i].kv_heads, slides ? 2 : 1);
  }
}

TEST(Gemma4, DefaultsAreThoseOfTheOracle) {
  const cache::StateNeeds needs =
      gemma4.needs(parsed({{"model_type", "gemma4"}, {"text_config", Json::object()}}));
  ASSERT_EQ(needs.size(), 15u);  // 35 layers, 20 of which share
  EXPECT_EQ(needs[0].window_size, 512);
  EXPECT_EQ(needs[0].key_dim, 256);
  EXPECT_EQ(needs[4].window, cache::WindowKind::full);
  EXPECT_EQ(needs[4].key_dim, 512);
  EXPECT_EQ(needs[4].kv_heads, 1);
}

TEST(Gemma4, ConfigsThatTheGraphCannotBeAreRefusedWithKeyAndValue) {
  const auto message = [](ErrorCode code, const char* key, const Json& value) {
    TinyGemma4 checkpoint;
    checkpoint.config[key] = value;
    return message_of(code, [&] { gemma4.rules(parsed(checkpoint.config)); });
  };
  const ErrorCode corrupt = ErrorCode::corrupt_file, unsupported = ErrorCode::unsupported;
  EXPECT_TRUE(
      names(message(corrupt, "num_kv_shared_layers", 6), {"dir/config.json", "num_kv_shared_layers is 6"}));
  EXPECT_TRUE(names(message(unsupported, "num_kv_shared_layers", 5), {"layer 1", "the first 1 layers"}));
  EXPECT_TRUE(
      names(message(unsupported, "rope_parameters", {{"rope_theta", 1e4}}), {"rope_parameters", "sliding"}));
  EXPECT_TRUE(names(message(unsupported, "hidden_activation", "silu"), {"hidden_activation", "'silu'"}));
  EXPECT_TRUE(names(message(corrupt, "enable_moe_block", true), {"num_experts is 0"}));
  const Json partial = {{"full_attention", {{"rope_theta", 1e6}}},
                        {"sliding_attention", {{"rope_theta", 1e4}, {"partial_rotary_factor", 0.5}}}};
  EXPECT_TRUE(
      names(message(unsupported, "rope_parameters", partial), {"sliding_attention", "0.5", "proportional"}));
  TinyGemma4 checkpoint;
  checkpoint.config["attention_k_eq_v"] = true;
  checkpoint.config["num_global_key_value_heads"] = 3;
  EXPECT_TRUE(names(message_of(corrupt, [&] { gemma4.rules(parsed(checkpoint.config)); }),
                    {"num_global_key_value_heads 3", "4 heads"}));
}

TEST(Gemma4, WidthsOfTensorsAreHeldAgainstTheConfigAndBothAreNamed) {
  const auto message = [](const char* key, const Json& value) {
    TinyGemma4 checkpoint;
    checkpoint.config[key] = value;
    return refused(checkpoint, ErrorCode::corrupt_file);
  };
  EXPECT_TRUE(names(message("intermediate_size", 96), {"layers.0.mlp.gate_proj has 64 rows", "96"}));
  EXPECT_TRUE(names(message("use_double_wide_mlp", false), {"layers.4.mlp.gate_proj has 128 rows", "64"}));
  EXPECT_TRUE(names(message("num_key_value_heads", 1), {"layers.0.self_attn.k_proj has 64 rows", "32"}));
  EXPECT_TRUE(names(message("hidden_size_per_layer_input", 16), {"per_layer_input_gate has 32 rows", "16"}));
  TinyGemma4 checkpoint;
  checkpoint.matrix("model.embed_tokens_per_layer", 95, TinyGemma4::kLayers * TinyGemma4::kInputs);
  EXPECT_TRUE(
      names(refused(checkpoint, ErrorCode::corrupt_file), {"embed_tokens_per_layer has 95 rows", "96"}));
}

TEST(Gemma4, WhereTheConfigIsSilentTheTensorsSayWhetherSharedLayersAreDoubled) {
  TinyGemma4 doubled;
  doubled.config.erase("use_double_wide_mlp");
  EXPECT_NO_THROW(doubled.open());
  TinyGemma4 equal;
  equal.config.erase("use_double_wide_mlp");
  for (int i = TinyGemma4::kOwners; i < TinyGemma4::kLayers; ++i) {
    for (const char* name : {"gate_proj", "up_proj"})
      equal.matrix(TinyGemma4::layer(i) + "mlp." + name, TinyGemma4::kInner, TinyGemma4::kHidden);
    equal.matrix(TinyGemma4::layer(i) + "mlp.down_proj", TinyGemma4::kHidden, TinyGemma4::kInner);
  }
  EXPECT_NO_THROW(equal.open());
}

TEST(Gemma4, NativeModeRefusesItByName) {
  TinyGemma4 checkpoint;
  EXPECT_TRUE(
      names(message_of(ErrorCode::unsupported,
                       [&] { checkpoint.open([](ModelOptions& o) { o.mode = NumericMode::native; }); }),
            {"config.json", "Gemma 4", "--math reference"}));
}

TEST(Gemma4, ATextModelThatSeesBothWaysIsAWarning) {
  TinyGemma4 checkpoint;
  checkpoint.config["use_bidirectional_attention"] = "vision";  // concerns images only
  EXPECT_TRUE(parsed(checkpoint.config).warnings.empty());
  checkpoint.config["use_bidirectional_attention"] = "all";
  const auto warnings = parsed(checkpoint.config).warnings;
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(names(warnings[0], {"use_bidirectional_attention", "all"}));
}

TEST(Gemma4, AnAnswerEndsAtAnyOfThreeTokens) {
  TinyGemma4 checkpoint;
  checkpoint.config["eos_token_id"] = {1, 106};
  checkpoint.write("generation_config.json", R"({"eos_token_id": [1, 106, 50]})");
  EXPECT_EQ(checkpoint.open()->end_ids, (std::set<int>{1, 50, 106}));
  // A GGUF file names one of them; converters make the marker of tool answers an ordinary visible token.
  checkpoint::GgufTokenizer gguf;
  std::vector<std::string> tokens(107);
  gguf.token_types.resize(107, 1);
  tokens[1] = "<eos>";
  gguf.token_types[1] = 3;
  tokens[50] = "<|tool_response>";
  gguf.token_types[50] = 4;
  tokens[106] = "<turn|>";
  gguf.token_types[106] = 3;
  gguf.tokens = StringList(tokens);
  gguf.eos_id = 106;
  EXPECT_EQ(end_ids({.config = {}, .gguf = gguf, .eos_token = "", .chat_template = ""}),
            (std::set<int>{1, 50, 106}));
}

TEST(Gemma4, AMissingTensorAndOneTooManyAreNamed) {
  TinyGemma4 checkpoint;
  checkpoint.tensors.erase("model.layers.2.layer_scalar");
  checkpoint.matrix("lm_head", TinyGemma4::kVocabulary, TinyGemma4::kHidden);  // the head is tied
  EXPECT_TRUE(
      names(refused(checkpoint, ErrorCode::corrupt_file), {"model.layers.2.layer_scalar", "lm_head.weight"}));
}

// Logits of one token in a step behind that of 40 others: keys are encoded between two steps.
std::vector<float> last_logits(const ModelBundle& model, const char* kv) {
  const auto store = model.make_store(cache::parse_kv_policy(kv));
  cache::Row row = store->create();
  std::vector<float> last;
  for (const int count : {40, 1}) {
    std::vector<int> tokens;
    for (int i = 0; i < count; ++i) tokens.push_back((7 * i + count) % TinyGemma4::kVocabulary);
    const cache::RowSpan span{&row, count};
    cache::Step step = store->plan({&span, 1});
    const mx::array ids(tokens.data(), {count}, mx::int32);
    mx::array logits = mx::contiguous(model.graph->logits(model.graph->hidden(ids, step)));
    std::vector<mx::array> outputs = step.pending();
    outputs.push_back(logits);
    mx::eval(outputs);
    step.publish();
    last.assign(logits.data<float>(), logits.data<float>() + logits.size());
  }
  return last;
}

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::pow(double{a[i]} - b[i], 2);
  return std::sqrt(sum);
}

// The layers that own keys put nothing of their attention into the stream, so that keys and values are the
// same under every codec, and only what the sharing layers read differs: dense rows, or those that the codec
// kept. A step of 8 bits is 17 times finer than one of 4 (255 to 15), and attention is smooth in keys and
// values: 4 times is left for what is not linear. A layer that read dense rows would not move at all, one
// that read codes as numbers would move by as much for either.
TEST(Gemma4, SharingLayersReadWhatTheirDonorsCodecKept) {
  TinyGemma4 checkpoint;
  for (int i = 0; i < TinyGemma4::kOwners; ++i) {
    mx::array& output = checkpoint.tensors.at(TinyGemma4::layer(i) + "self_attn.o_proj.weight");
    output = mx::zeros_like(output);
  }
  const auto model = checkpoint.open();
  const std::vector<float> dense = last_logits(*model, "dense");
  const double fine = distance(dense, last_logits(*model, "affine:8:32"));
  const double coarse = distance(dense, last_logits(*model, "affine:4:32"));
  const double size = distance(dense, std::vector<float>(dense.size(), 0.0f));
  EXPECT_GT(fine, 0.0);
  EXPECT_LT(4 * fine, coarse);
  EXPECT_LT(coarse, size / 2);
}

}  // namespace
}  // namespace godwit::models
