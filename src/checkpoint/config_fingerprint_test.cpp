#include "checkpoint/config_fingerprint.h"

#include <map>
#include <set>

#include "checkpoint/test_files.h"

namespace godwit::checkpoint {
namespace {

const Json kLlama =
    Json::parse(R"({"model_type":"llama","hidden_size":64,"num_hidden_layers":4,"intermediate_size":128,
    "num_attention_heads":4,"vocab_size":96,"rms_norm_eps":1e-5,"rope_theta":10000.0})");

Config parse(const Json& changes = Json::object(), Json base = kLlama,
             const std::optional<Json>& generation = std::nullopt) {
  if (changes.is_object()) base.update(changes);  // {} is null
  return parse_config(base, generation, "dir/config.json");
}

std::string digits(const Json& changes) { return config_fingerprint(parse(changes)).digits; }

// The text is written by hand; the digest is that of
//   printf 'godwit-config-1\n{"config":...,"source":"json"}' | sha256sum
TEST(ConfigFingerprint, fixed_vector) {
  const Config config = parse();
  EXPECT_EQ(
      canonical_config(config),
      R"({"config":{"hidden_size":64,"intermediate_size":128,"model_type":"llama","num_attention_heads":4,)"
      R"("num_hidden_layers":4,"rms_norm_eps":1e-05,"rope_theta":10000,"vocab_size":96},)"
      R"("model_type":"llama","source":"json"})");
  const Fingerprint fingerprint = config_fingerprint(config);
  EXPECT_EQ(fingerprint.digits, "cf274178825469499d0250a02dd6867d3bf7785c53123ef503ef54a0c6028f87");
  EXPECT_EQ(fingerprint.shown(), "cf27417882546949");
}

TEST(ConfigFingerprint, the_order_of_keys_and_the_spelling_of_numbers_and_nulls_do_not_count) {
  Json reversed = Json::object();
  for (auto at = kLlama.rbegin(); at != kLlama.rend(); ++at) reversed[at.key()] = at.value();
  reversed["rope_theta"] = 1e4;
  reversed["hidden_size"] = 64.0;
  reversed["head_dim"] = nullptr;
  reversed["rope_scaling"] = nullptr;
  EXPECT_EQ(config_fingerprint(parse({}, reversed)), config_fingerprint(parse()));
}

TEST(ConfigFingerprint, what_no_graph_reads_does_not_count) {
  const std::string plain = digits({});
  EXPECT_EQ(digits({{"architectures", {"LlamaForCausalLM"}}, {"transformers_version", "4.51.0"}}), plain);
  EXPECT_EQ(digits({{"bos_token_id", 1}, {"eos_token_id", {2, 3}}, {"pad_token_id", 0}}), plain);
  EXPECT_EQ(digits({{"torch_dtype", "bfloat16"}, {"dtype", "float16"}, {"use_cache", false}}), plain);
  EXPECT_EQ(digits({{"initializer_range", 0.02}, {"attention_dropout", 0.1}, {"_name_or_path", "a/b"}}),
            plain);
  const Json generation = {{"temperature", 0.7}, {"eos_token_id", 5}};
  EXPECT_EQ(config_fingerprint(parse({}, kLlama, generation)).digits, plain);
  Config elsewhere = parse();
  elsewhere.origin = "other/config.json";
  EXPECT_EQ(config_fingerprint(elsewhere).digits, plain);
}

TEST(ConfigFingerprint, every_other_key_counts) {
  const std::vector<Json> changes = {
      {{"hidden_size", 128}},
      {{"num_hidden_layers", 5}},
      {{"intermediate_size", 256}},
      {{"num_attention_heads", 8}},
      {{"num_key_value_heads", 2}},
      {{"head_dim", 32}},
      {{"vocab_size", 97}},
      {{"rms_norm_eps", 1e-6}},
      {{"rope_theta", 10001.0}},
      {{"rope_scaling", {{"type", "linear"}, {"factor", 2.0}}}},
      {{"rope_scaling", {{"type", "linear"}, {"factor", 4.0}}}},
      {{"attention_bias", true}},
      {{"mlp_bias", true}},
      {{"tie_word_embeddings", true}},
      {{"hidden_act", "gelu"}},
      {{"max_position_embeddings", 128}},
      {{"sliding_window", 16}},
      {{"layer_types", {"full_attention", "full_attention", "full_attention", "full_attention"}}},
      {{"layer_types", {"full_attention", "full_attention", "full_attention", "sliding_attention"}}},
      {{"final_logit_softcapping", 30.0}},
      {{"top_k", 8}},
      {{"a_key_of_tomorrow", {{"deep", {1, {{"er", false}}}}}}},
      {{"a_key_of_tomorrow", {{"deep", {1, {{"er", true}}}}}}},
      {{"a_key_of_tomorrow", {{"dtype", "x"}}}},  // only the object's own level is known
      {{"model_type", "qwen3"}},
  };
  std::map<std::string, std::string> seen = {{digits({}), "nothing"}};
  for (const Json& change : changes) {
    const auto [at, is_new] = seen.emplace(digits(change), change.dump());
    EXPECT_TRUE(is_new) << change.dump() << " and " << at->second;
  }
}

TEST(ConfigFingerprint, the_quantization_map_counts_wherever_it_stands) {
  const Json four = {{"bits", 4}, {"group_size", 64}};
  Json mixed = four;
  mixed["model.layers.0.mlp.down_proj"] = {{"bits", 8}, {"group_size", 64}};
  Json dense_head = four;
  dense_head["lm_head"] = false;
  std::set<std::string> seen = {digits({})};
  for (const Json& map : {four, Json{{"bits", 8}, {"group_size", 64}}, Json{{"bits", 4}, {"group_size", 32}},
                          mixed, dense_head})
    EXPECT_TRUE(seen.insert(digits({{"quantization", map}})).second) << map.dump();
  EXPECT_EQ(digits({{"quantization", four}}),
            digits({{"quantization", four}, {"quantization_config", four}}));
  // Beside a nested decoder, too.
  const Json nested = {{"model_type", "outer"}, {"text_config", kLlama}};
  EXPECT_NE(config_fingerprint(parse({}, nested)),
            config_fingerprint(parse({{"quantization", four}}, nested)));
}

TEST(ConfigFingerprint, a_nested_decoder_counts_by_its_own_object_and_the_outer_type) {
  const Json nested = {{"model_type", "outer"}, {"text_config", kLlama}, {"vision_config", {{"depth", 2}}}};
  const auto of = [](const Json& json) { return config_fingerprint(parse({}, json)); };
  Json other_tower = nested;
  other_tower["vision_config"]["depth"] = 3;
  EXPECT_EQ(of(nested), of(other_tower));  // no part of the decoder
  Json wider = nested;
  wider["text_config"]["hidden_size"] = 128;
  EXPECT_NE(of(nested), of(wider));
  Json renamed = nested;
  renamed["model_type"] = "another";
  EXPECT_NE(of(nested), of(renamed));
}

TEST(ConfigFingerprint, a_gguf_config_has_its_own) {
  Config config = parse();
  config.from_gguf = true;
  EXPECT_NE(config_fingerprint(config), config_fingerprint(parse()));
}

}  // namespace
}  // namespace godwit::checkpoint
