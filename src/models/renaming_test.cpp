#include "models/renaming.h"

#include <gtest/gtest.h>

namespace godwit::models {
namespace {

TEST(Renaming, ReplacesWholePartsFromLeftToRight) {
  const auto rename = renaming({{"transformer.h", "model.layers"},
                                {"transformer.ln_f", "model.norm"},
                                {"ln_1", "input_layernorm"},
                                {"attn.attention", "self_attn"},
                                {"language_model", ""}});
  EXPECT_EQ(rename("transformer.h.3.ln_1.weight"), "model.layers.3.input_layernorm.weight");
  EXPECT_EQ(rename("transformer.h.0.attn.attention.q_proj.scales"), "model.layers.0.self_attn.q_proj.scales");
  EXPECT_EQ(rename("transformer.ln_f.weight"), "model.norm.weight");
  EXPECT_EQ(rename("language_model.model.norm"), "model.norm");
  EXPECT_EQ(rename("ln_1"), "input_layernorm");
}

TEST(Renaming, LeavesPartsThatOnlyBeginAlike) {
  const auto rename = renaming({{"ln_1", "input_layernorm"}, {"h", "layers"}});
  EXPECT_EQ(rename("ln_10.weight"), "ln_10.weight");
  EXPECT_EQ(rename("head.weight"), "head.weight");
  EXPECT_EQ(rename(""), "");
  EXPECT_EQ(renaming({}), nullptr);
}

}  // namespace
}  // namespace godwit::models
