// Every codec x window x content x mode either opens a store or is refused by the name of its layer.
#include "cache/serveable.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace godwit::cache {
namespace {

LayerNeed layer(Content content, WindowKind window, int dim) {
  LayerNeed need{.content = content, .window = window, .kv_heads = 2, .key_dim = dim, .value_dim = dim};
  if (window == WindowKind::sliding) need.window_size = 32;
  if (content == Content::latent) need.kv_heads = 1;
  if (content == Content::recurrent)
    need.recurrent = {.key_heads = 1, .value_heads = 2, .key_dim = 16, .value_dim = 16, .channels = 64, .kernel = 4};
  return need;
}

// What stops the policy, or nothing. The layer in question is the second of two.
std::string refusal(const LayerNeed& need, const char* policy, NumericMode mode) {
  const LayerNeed plain = layer(Content::recurrent, WindowKind::full, 64);
  try {
    check_serveable({plain, need}, parse_kv_policy(policy), mode);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported) << error.what();
    return error.what();
  }
  return "";
}

constexpr NumericMode kModes[] = {NumericMode::reference, NumericMode::native};
constexpr WindowKind kWindows[] = {WindowKind::full, WindowKind::sliding};

TEST(Serveable, KeysAndValuesTakeEveryCodecThatFitsTheirHeads) {
  for (const NumericMode mode : kModes)
    for (const WindowKind window : kWindows) {
      const LayerNeed need = layer(Content::keys_values, window, 128);
      for (const char* policy : {"dense", "dense:bf16", "dense:f16", "dense:f32", "affine:2:32", "affine:3:64",
                                 "affine:4:128", "affine:5", "affine:6", "affine:8"})
        EXPECT_EQ(refusal(need, policy, mode), "") << policy;
      const std::string turbo = refusal(need, "turbo:8:3", mode);
      if (window == WindowKind::full)
        EXPECT_EQ(turbo, "");
      else
        EXPECT_NE(turbo.find("layer 1: turbo:8:3"), std::string::npos) << turbo;
    }
}

TEST(Serveable, HeadsThatACodecDoesNotFitAreRefusedByTheirSize) {
  for (const NumericMode mode : kModes) {
    const LayerNeed eighty = layer(Content::keys_values, WindowKind::full, 80);
    EXPECT_NE(refusal(eighty, "affine:4:32", mode).find("80"), std::string::npos);
    EXPECT_NE(refusal(eighty, "turbo:8:3", mode).find("80"), std::string::npos);
    LayerNeed uneven = layer(Content::keys_values, WindowKind::full, 128);
    uneven.value_dim = 96;
    EXPECT_EQ(refusal(uneven, "affine:4:32", mode), "");
    EXPECT_NE(refusal(uneven, "affine:4:64", mode).find("96"), std::string::npos);
    EXPECT_NE(refusal(uneven, "turbo:8:3", mode).find("96"), std::string::npos);
  }
}

TEST(Serveable, OtherContentsStayDenseOrAreRefusedByWhatTheyHold) {
  for (const NumericMode mode : kModes) {
    // No tokens to encode: any policy leaves them as they are.
    for (const Content content : {Content::cross, Content::recurrent})
      for (const char* policy : {"dense", "affine:4", "turbo:8:3"})
        EXPECT_EQ(refusal(layer(content, WindowKind::full, 64), policy, mode), "") << policy;
    const LayerNeed shared = layer(Content::keys_as_values, WindowKind::full, 64);
    EXPECT_EQ(refusal(shared, "dense", mode), "");
    EXPECT_NE(refusal(shared, "turbo:8:3", mode).find("keys that serve as values"), std::string::npos);
  }
  LayerNeed part = layer(Content::keys_as_values, WindowKind::full, 64);
  part.value_dim = 32;
  EXPECT_EQ(refusal(part, "affine:4", NumericMode::native), "");
  EXPECT_NE(refusal(part, "affine:4", NumericMode::reference).find("first 32 of 64"), std::string::npos);
}

TEST(Serveable, LatentsAreDense) {
  const LayerNeed latent = layer(Content::latent, WindowKind::full, 64);
  for (const NumericMode mode : kModes) {
    for (const char* policy : {"dense", "dense:bf16", "dense:f16", "dense:f32"})
      EXPECT_EQ(refusal(latent, policy, mode), "") << policy;
    for (const char* policy : {"affine:4", "turbo:8:3"})
      EXPECT_NE(refusal(latent, policy, mode).find("a latent"), std::string::npos) << policy;
  }
  LayerNeed glm = latent;
  glm.key_dim = 512;
  EXPECT_EQ(refusal(glm, "dense", NumericMode::native), "");
  LayerNeed wide = glm;
  wide.value_dim = 80;
  EXPECT_NE(refusal(wide, "dense", NumericMode::native).find("keys have 592, values 512"), std::string::npos);
  EXPECT_EQ(refusal(wide, "dense", NumericMode::reference), "");
  LayerNeed indexed = glm;
  indexed.index_dim = 128;
  EXPECT_NE(refusal(indexed, "dense", NumericMode::native).find("sparse selection"), std::string::npos);
  EXPECT_EQ(refusal(indexed, "dense", NumericMode::reference), "");
}

TEST(Serveable, NeedsThatMakeNoSenseAreBadArguments) {
  const auto code_of = [](const LayerNeed& need) {
    try {
      check_serveable({need}, {}, NumericMode::reference);
    } catch (const Error& error) {
      return error.code();
    }
    ADD_FAILURE() << "nothing was thrown";
    return ErrorCode::internal;
  };
  LayerNeed need = layer(Content::keys_values, WindowKind::sliding, 64);
  need.window_size = 0;
  EXPECT_EQ(code_of(need), ErrorCode::invalid_argument);
  need = layer(Content::keys_as_values, WindowKind::full, 64);
  need.value_dim = 65;
  EXPECT_EQ(code_of(need), ErrorCode::invalid_argument);
  need = layer(Content::latent, WindowKind::full, 64);
  need.kv_heads = 2;
  EXPECT_EQ(code_of(need), ErrorCode::invalid_argument);
  need = layer(Content::keys_values, WindowKind::full, 64);
  need.index_dim = 16;
  EXPECT_EQ(code_of(need), ErrorCode::invalid_argument);
  need = layer(Content::recurrent, WindowKind::full, 64);
  need.recurrent.channels = 63;
  EXPECT_EQ(code_of(need), ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace godwit::cache
