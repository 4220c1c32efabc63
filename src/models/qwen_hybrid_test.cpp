// What goldens of the hybrid and sparse Qwen families do not reach: refusals by name, warnings, the
// multi-token head.
#include "models/qwen_hybrid.h"

#include "models/mtp_head.h"
#include "models/tiny_hybrid.h"

namespace godwit::models {
namespace {

std::string refused(ErrorCode code, const std::function<void(TinyHybrid&)>& change) {
  TinyHybrid checkpoint;
  change(checkpoint);
  return message_of(code, [&] { checkpoint.open(); });
}

std::vector<std::string> warnings_of(const TinyHybrid& checkpoint) {
  return checkpoint.open()->graph->warnings();
}

TEST(QwenHybrid, KeysWithTreacherousDefaultsAreRequired) {
  for (const char* key : {"linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim",
                          "linear_value_head_dim", "linear_conv_kernel_dim"})
    EXPECT_TRUE(names(refused(ErrorCode::corrupt_file, [&](TinyHybrid& c) { c.config.erase(key); }), {key}));
  EXPECT_TRUE(names(refused(ErrorCode::corrupt_file,
                            [](TinyHybrid& c) {
                              c.config["rope_theta"] = 1e6;  // the oracle does not look here
                              c.config["rope_parameters"].erase("rope_theta");
                            }),
                    {"rope_parameters.rope_theta"}));
}

TEST(QwenHybrid, LayerTypesMustAgreeWithTheInterval) {
  const auto types = [](const char* first) {
    return [first](TinyHybrid& c) { c.config["layer_types"] = {first, "full_attention"}; };
  };
  TinyHybrid agreeing;
  types("linear_attention")(agreeing);
  EXPECT_NE(agreeing.open(), nullptr);
  EXPECT_TRUE(names(refused(ErrorCode::corrupt_file, types("full_attention")),
                    {"layer_types[0]", "full_attention", "interval 2", "linear_attention"}));
}

TEST(QwenHybrid, OtherGatesAndHeadsThatDoNotDivideAreRefused) {
  EXPECT_TRUE(
      names(refused(ErrorCode::unsupported, [](TinyHybrid& c) { c.config["output_gate_type"] = "sigmoid"; }),
            {"output_gate_type", "sigmoid"}));
  EXPECT_TRUE(
      names(refused(ErrorCode::unsupported, [](TinyHybrid& c) { c.config["attn_output_gate"] = false; }),
            {"attn_output_gate"}));
  EXPECT_TRUE(
      names(refused(ErrorCode::corrupt_file, [](TinyHybrid& c) { c.config["linear_num_key_heads"] = 3; }),
            {"2 value heads", "3 key heads"}));
}

TEST(QwenHybrid, NativeModeRefusesAFormatByNameAndAutoTakesReference) {
  const TinyHybrid checkpoint;
  EXPECT_TRUE(names(message_of(ErrorCode::unsupported,
                               [&] { checkpoint.open([](auto& o) { o.mode = NumericMode::native; }); }),
                    {"F32", "no native kernel"}));
  EXPECT_EQ(checkpoint.open([](auto& o) { o.mode.reset(); })->mode, NumericMode::reference);
}

// The classical bug of these families: fluent text for a while.
TEST(QwenHybrid, NormsShiftedTwiceOrNotAtAllAreWarnedAbout) {
  EXPECT_TRUE(warnings_of(TinyHybrid()).empty());
  for (const auto& [value, word] : {std::pair(2.0f, "twice"), std::pair(0.0f, "not at all")}) {
    TinyHybrid checkpoint;
    for (const char* layer : {"0", "1"})
      checkpoint.tensors.insert_or_assign(std::string("model.layers.") + layer + ".input_layernorm.weight",
                                          mx::full({8}, mx::array(value)));
    const std::vector<std::string> warnings = warnings_of(checkpoint);
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_TRUE(names(warnings[0], {"config.json", "input_layernorm", word}));
  }
}

// The last two axes of the convolution tell a file of Hugging Face: its norms hold w - 1.
TEST(QwenHybrid, ARawConvolutionShiftsNormsOnceAndNeverTheGatedOne) {
  TinyHybrid raw;
  const std::string conv = "model.layers.0.linear_attn.conv1d.weight";
  raw.tensors.insert_or_assign(conv, mx::contiguous(mx::swapaxes(raw.tensors.at(conv), 1, 2)));
  EXPECT_EQ(warnings_of(raw).size(), 1u);  // 1 + 1
  for (auto& [name, tensor] : raw.tensors)
    if (name.ends_with("norm.weight") && name.find("linear_attn") == std::string::npos)
      tensor = tensor - mx::array(1.0f);
  EXPECT_TRUE(warnings_of(raw).empty());
  const auto logits = [](const ModelBundle& model) {
    cache::Row row = model.store->create();
    const cache::RowSpan span{&row, 3};
    cache::Step step = model.store->plan({&span, 1});
    mx::array out = model.graph->logits(model.graph->hidden(mx::array({1, 5, 7}, {3}, mx::int32), step));
    std::vector<mx::array> outputs = step.pending();
    outputs.push_back(out);
    mx::eval(outputs);
    return out;
  };
  const auto shifted = raw.open(), converted = TinyHybrid().open();
  EXPECT_TRUE(mx::array_equal(logits(*shifted), logits(*converted)).item<bool>());
}

TEST(QwenHybrid, TheMultiTokenHeadIsLoadedWithTheModelAndAudited) {
  TinyHybrid checkpoint;
  EXPECT_EQ(dynamic_cast<const DecoderWithMtp*>(checkpoint.open()->graph.get()), nullptr);
  checkpoint.add_head();
  const auto model = checkpoint.open();
  const auto* const with_head = dynamic_cast<const DecoderWithMtp*>(model->graph.get());
  ASSERT_NE(with_head, nullptr);
  EXPECT_EQ(with_head->mtp().layers.size(), 1u);
  EXPECT_EQ(with_head->state_needs().size(), 2u);
  checkpoint.tensors.erase("mtp.fc.weight");
  EXPECT_TRUE(names(message_of(ErrorCode::corrupt_file, [&] { checkpoint.open(); }), {"mtp.fc.weight"}));
  checkpoint.add_head();
  checkpoint.add("mtp.extra.weight", {4});
  EXPECT_TRUE(names(message_of(ErrorCode::corrupt_file, [&] { checkpoint.open(); }), {"mtp.extra.weight"}));
}

TEST(QwenHybrid, GgufNamesOfTheHeadAndThoseWithoutALeaf) {
  const auto name = [](std::string_view given) { return hybrid_gguf_name(given, 4); };
  EXPECT_EQ(name("blk.2.ssm_a"), "model.layers.2.linear_attn.A_log");
  EXPECT_EQ(name("blk.2.ssm_dt.bias"), "model.layers.2.linear_attn.dt_bias");
  EXPECT_EQ(name("model.layers.3.mlp.up_proj.weight"), "model.layers.3.mlp.up_proj.weight");
  EXPECT_EQ(name("model.layers.4.mlp.up_proj.weight"), "mtp.layers.0.mlp.up_proj.weight");
  EXPECT_EQ(name("blk.4.nextn.eh_proj.weight"), "mtp.fc.weight");
  EXPECT_EQ(name("blk.4.nextn.shared_head_norm.weight"), "mtp.norm.weight");
  EXPECT_EQ(name("model.norm.weight"), "model.norm.weight");
}

}  // namespace
}  // namespace godwit::models
