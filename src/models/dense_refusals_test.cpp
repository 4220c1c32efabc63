// What the graphs of families around parallel branches, packed projections and layer norms lack is refused by
// name before any tensor file is opened.
#include <gtest/gtest.h>

#include "checkpoint/gguf.h"
#include "models/families.h"
#include "models/tiny_checkpoint.h"

namespace godwit::models {
namespace {

Json base(const Family& family) {
  return {{"model_type", family.id},
          {"hidden_size", 64},
          {"num_hidden_layers", 2},
          {"intermediate_size", 128},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"head_dim", 16},
          {"vocab_size", 96},
          {"rms_norm_eps", 1e-6},
          {"layer_norm_eps", 1e-5},
          {"norm_eps", 1e-5},
          {"attention_bias", false},
          {"partial_rotary_factor", 0.5},
          {"use_qkv_bias", false},
          {"max_position_embeddings", 512}};
}

void ask(const Family& family, const Json& json) {
  const checkpoint::Dialects dialects({family.dialect});
  family.rules(checkpoint::parse_config(json, std::nullopt, "dir/config.json", dialects));
}

std::string refusal(ErrorCode code, const Family& family, const char* key, const Json& value) {
  Json json = base(family);
  ask(family, json);  // the shape itself is served
  json[key] = value;
  return message_of(code, [&] { ask(family, json); });
}

Json scaling(const char* type) { return {{"type", type}, {"factor", 2.0}}; }

TEST(DenseRefusals, RopeScalingsThatTheOracleWouldPassOver) {
  const auto unsupported = ErrorCode::unsupported;
  for (const Family* family :
       {&gemma, &gemma2, &glm, &glm4, &phi, &starcoder2, &stablelm, &cohere, &cohere2, &nanochat})
    EXPECT_TRUE(names(refusal(unsupported, *family, "rope_scaling", scaling("linear")),
                      {"dir/config.json", "linear"}))
        << family->id;
  EXPECT_TRUE(names(refusal(unsupported, phi3, "rope_scaling", scaling("yarn")), {"phi3", "yarn"}));
  EXPECT_TRUE(
      names(refusal(unsupported, nemotron, "rope_scaling", scaling("dynamic")), {"nemotron", "dynamic"}));
}

TEST(DenseRefusals, WhatOnlyOneFamilyLacks) {
  const auto unsupported = ErrorCode::unsupported;
  EXPECT_TRUE(names(refusal(unsupported, phi, "qk_layernorm", true), {"dir/config.json", "qk_layernorm"}));
  EXPECT_TRUE(names(refusal(unsupported, gemma2, "attn_logit_softcapping", 0.0), {"attn_logit_softcapping"}));
  // An explicit null means no cap, not the default.
  EXPECT_TRUE(
      names(refusal(unsupported, gemma2, "final_logit_softcapping", nullptr), {"final_logit_softcapping"}));
  EXPECT_TRUE(names(refusal(unsupported, gemma, "hidden_act", "silu"), {"silu", "gelu"}));
  EXPECT_TRUE(names(refusal(unsupported, nemotron, "hidden_act", "silu"), {"silu", "relu2"}));
}

TEST(DenseRefusals, KeysWithoutADefaultAreNeeded) {
  const auto corrupt = ErrorCode::corrupt_file;
  EXPECT_TRUE(names(refusal(corrupt, gemma, "head_dim", nullptr), {"head_dim"}));
  EXPECT_TRUE(names(refusal(corrupt, glm4, "attention_bias", nullptr), {"attention_bias"}));
  EXPECT_TRUE(names(refusal(corrupt, stablelm, "use_qkv_bias", nullptr), {"use_qkv_bias"}));
  EXPECT_TRUE(names(refusal(corrupt, stablelm, "partial_rotary_factor", nullptr), {"partial_rotary_factor"}));
  EXPECT_TRUE(names(refusal(corrupt, nemotron, "norm_eps", nullptr), {"norm_eps"}));
}

TEST(DenseRefusals, GgufFilesOfGlm4sMultimodalKin) {
  const checkpoint::GgufDialect& dialect = glm4.dialect->gguf[0];
  for (const char* key : {"glm4.rope.dimension_sections", "glm4.nextn_predict_layers"}) {
    checkpoint::GgufFile file;
    Json config = Json::object();
    dialect.complete(file, config);
    file.metadata = checkpoint::GgufMetadata({{key, std::int64_t{1}}}, "file.gguf");
    EXPECT_TRUE(names(message_of(ErrorCode::unsupported, [&] { dialect.complete(file, config); }),
                      {"file.gguf", key}));
  }
}

}  // namespace
}  // namespace godwit::models
