// The words behind --kv, and the lists that mlx-optiq writes.
#include "cache/kv_policy.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"

namespace godwit::cache {
namespace {

struct Failure {
  ErrorCode code;
  std::string message;
};

Failure failure_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& e) {
    return {e.code(), e.what()};
  }
  ADD_FAILURE() << "nothing was thrown";
  return {ErrorCode::internal, ""};
}

KvPolicy config(std::string_view json, int layers = 4) {
  KvPolicy policy = parse_kv_policy("config");
  read_kv_config(policy, json, "kv_config.json", layers);
  return policy;
}

TEST(KvPolicy, WritesWhatItReads) {
  for (const char* text : {"dense", "dense:bf16", "dense:f16", "dense:f32", "affine:2:32", "affine:3:64",
                           "affine:4:128", "affine:5:64", "affine:6:32", "affine:8:64", "turbo:2:2",
                           "turbo:4:3", "turbo:5:4", "turbo:8:5", "turbo:8:8", "turbo:8:3:parity", "config"})
    EXPECT_EQ(to_string(parse_kv_policy(text)), text);
}

TEST(KvPolicy, WhatIsNotSaidHasItsDefault) {
  EXPECT_EQ(parse_kv_policy("dense:model"), parse_kv_policy("dense"));
  EXPECT_EQ(parse_kv_policy("affine:4"), parse_kv_policy("affine:4:64"));
  const KvPolicy turbo = parse_kv_policy("turbo:8:3");
  EXPECT_EQ(turbo.codec, (Codec{.kind = CodecKind::turbo, .key_bits = 8, .value_bits = 3}));
  EXPECT_EQ(turbo.dense, DenseType::model);
  EXPECT_EQ(turbo.start, 0);
  EXPECT_NE(turbo, parse_kv_policy("turbo:8:3:parity"));
}

TEST(KvPolicy, OthersAreRefusedByNameWithAListOfWhatThereIs) {
  for (const char* text : {"",
                           "Dense",
                           "dense:",
                           "dense:f64",
                           "dense:bf16:",
                           "affine",
                           "affine:",
                           "affine:7",
                           "affine:16",
                           "affine:04",
                           "affine:+4",
                           "affine:4:",
                           "affine:4:0",
                           "affine:4:256",
                           "affine:4:64:",
                           "affine:4:64:1",
                           "turbo",
                           "turbo:8",
                           "turbo:3:3",
                           "turbo:8:6",
                           "turbo:8:3:",
                           "turbo:8:3:safe",
                           "turbo:8:3:parity:",
                           "config:x",
                           " dense",
                           "affine: 4"}) {
    const Failure failure = failure_of([&] { parse_kv_policy(text); });
    EXPECT_EQ(failure.code, ErrorCode::invalid_argument) << text;
    for (const std::string& part :
         {"'" + std::string(text) + "'", std::string("dense:bf16"), std::string("2, 3, 4, 5, 6 or 8"),
          std::string("32, 64 or 128"), std::string("keys of 2, 4, 5 or 8"), std::string("config")})
      EXPECT_NE(failure.message.find(part), std::string::npos) << failure.message;
  }
}

TEST(KvConfig, NamesTheCodecOfEachLayerAndLeavesTheOthersDense) {
  const KvPolicy policy = config(R"([{"layer_idx": 0, "bits": 4, "group_size": 32},
                                     {"layer_idx": 3, "bits": 8, "group_size": 64}, {"layer_idx": 2, "bits": 6}])");
  EXPECT_EQ(to_string(policy.codec_of(0)), "affine:4:32");
  EXPECT_EQ(to_string(policy.codec_of(1)), "dense");
  EXPECT_EQ(to_string(policy.codec_of(2)), "affine:6:64");  // mlx-optiq's group where none is named
  EXPECT_EQ(to_string(policy.codec_of(3)), "affine:8:64");
  EXPECT_EQ(to_string(policy), "config");
  EXPECT_NE(policy, config(R"([{"layer_idx": 0, "bits": 4, "group_size": 32}])"));
}

TEST(KvConfig, DamagedListsAreNamedAndChangeNothing) {
  KvPolicy policy = parse_kv_policy("config");
  for (const char* json :
       {"", "{", "{}", "4", "[]", "[4]", "[[]]", "[{}]", R"([{"layer_idx": 0}])", R"([{"bits": 4}])",
        R"([{"layer_idx": 4, "bits": 4}])", R"([{"layer_idx": -1, "bits": 4}])",
        R"([{"layer_idx": 0, "bits": 4, "bits": 8}])", R"([{"layer_idx": 0, "layer_idx": 1, "bits": 4}])",
        R"([{"layer_idx": 0.5, "bits": 4}])", R"([{"layer_idx": "0", "bits": 4}])",
        R"([{"layer_idx": 0, "bits": "4"}])", R"([{"layer_idx": 4294967296, "bits": 4}])",
        R"([{"layer_idx": 0, "bits": 4, "group_size": null}])",
        R"([{"layer_idx": 1, "bits": 4}, {"layer_idx": 1, "bits": 4}])"}) {
    const Failure failure = failure_of([&] { read_kv_config(policy, json, "kv_config.json", 4); });
    EXPECT_EQ(failure.code, ErrorCode::corrupt_file) << json;
    EXPECT_NE(failure.message.find("kv_config.json"), std::string::npos) << failure.message;
    EXPECT_TRUE(policy.layers.empty());
  }
}

TEST(KvConfig, WidthsThatDoNotExistAreRefusedWithTheirLayer) {
  for (const char* json :
       {R"([{"layer_idx": 2, "bits": 7}])", R"([{"layer_idx": 2, "bits": 4, "group_size": 48}])"}) {
    const Failure failure = failure_of([&] { config(json); });
    EXPECT_EQ(failure.code, ErrorCode::unsupported);
    EXPECT_NE(failure.message.find("layer 2"), std::string::npos) << failure.message;
    EXPECT_NE(failure.message.find("there are"), std::string::npos) << failure.message;
  }
}

}  // namespace
}  // namespace godwit::cache
