#include "checkpoint/config.h"
#include "checkpoint/test_dialects.h"

#include <cmath>
#include <limits>

#include "checkpoint/test_files.h"

namespace godwit::checkpoint {
namespace {

const Json kLlama =
    Json::parse(R"({"model_type":"llama","hidden_size":64,"num_hidden_layers":4,"intermediate_size":128,
    "num_attention_heads":4,"vocab_size":96,"rms_norm_eps":1e-5})");

Config parse(const Json& changes, Json base = kLlama, std::optional<Json> generation = std::nullopt) {
  base.update(changes);
  return parse_config(base, generation, "dir/config.json", test_dialects());
}

TEST(Config, keys_that_are_left_out_take_the_family_values) {
  const Config config = parse(Json::object());
  EXPECT_EQ(config.kv_heads, 4);
  EXPECT_EQ(config.head_dim, 16);
  EXPECT_EQ(config.rope_theta, 10000.0);
  EXPECT_EQ(config.norm_eps, 1e-5);
  EXPECT_FALSE(config.tie_word_embeddings.has_value());
  EXPECT_FALSE(config.rope_scaling.has_value());
  EXPECT_EQ(parse({{"model_type", "qwen2"}}).rope_theta, 1000000.0);
  const Config gemma =
      parse_config(Json{{"model_type", "gemma3_text"}, {"hidden_size", 640}}, std::nullopt, "c", test_dialects());
  EXPECT_EQ(gemma.hidden, 640);
  EXPECT_EQ(gemma.head_dim, 256);
  EXPECT_EQ(gemma.sliding_window_pattern, 6);
  EXPECT_EQ(gemma.rope_local_theta, 10000.0);
}

TEST(Config, null_is_absent_and_unknown_keys_are_ignored) {
  const Config config = parse({{"head_dim", nullptr}, {"rope_scaling", nullptr}, {"surprise", {1, 2}}});
  EXPECT_EQ(config.head_dim, 16);
  EXPECT_TRUE(config.has("surprise"));
  EXPECT_FALSE(config.has("head_dim"));
}

TEST(Config, a_null_that_a_dialect_gives_a_meaning_is_not_the_default) {
  const auto cap = [](const Json& changes) { return parse(changes).final_logit_softcapping; };
  EXPECT_EQ(cap({{"model_type", "qwen3"}}), 30.0);
  EXPECT_EQ(cap({{"model_type", "qwen3"}, {"final_logit_softcapping", nullptr}}), 0.0);
  EXPECT_EQ(cap({{"model_type", "llama"}, {"final_logit_softcapping", nullptr}}), std::nullopt);
}

TEST(Config, a_value_that_changes_the_model_and_that_nobody_reads_is_a_warning) {
  const auto warnings = [](const char* value) {
    return parse({{"model_type", "qwen3"}, {"use_bidirectional_attention", value}}).warnings;
  };
  EXPECT_TRUE(warnings("vision").empty());
  ASSERT_EQ(warnings("all").size(), 1u);
  for (const char* word : {"dir/config.json", "use_bidirectional_attention", "'all'", "qwen3"})
    EXPECT_NE(warnings("all")[0].find(word), std::string::npos) << word;
}

TEST(Config, an_alias_reads_as_the_family_it_names) {
  const Config config = parse({{"model_type", "mistral"}});
  EXPECT_EQ(config.model_type, "llama");
  EXPECT_EQ(config.source_model_type, "mistral");
}

TEST(Config, keys_of_a_dialect_are_read_under_the_common_name_unless_that_is_there) {
  Json json = kLlama;
  json["model_type"] = "qwen3";
  json["n_layer"] = 7;
  json["n_embd"] = 32;
  json.erase("hidden_size");
  const Config config = parse_config(json, std::nullopt, "c", test_dialects());
  EXPECT_EQ(config.hidden, 32);
  EXPECT_EQ(config.layers, 4);  // num_hidden_layers is there, too
}

TEST(Config, a_type_that_no_dialect_reads_keeps_its_name_and_the_plain_defaults) {
  const Config config = parse({{"model_type", "hyena"}});
  EXPECT_EQ(config.model_type, "hyena");
  EXPECT_EQ(config.rope_theta, 10000.0);
}

TEST(Dialects, two_that_read_one_type_or_architecture_are_refused_by_name) {
  static constexpr Dialect kTwice = {.model_type = "mistral"};
  static constexpr Dialect kGguf = {.model_type = "other", .gguf = kTestLlamaGguf};
  for (const Dialect* extra : {&kTwice, &kGguf})
    expect_error(ErrorCode::internal, {extra == &kTwice ? "mistral" : "architecture llama"},
                 [&] { Dialects({&kTestDialects[0], extra}); });
  EXPECT_NO_THROW(Dialects({&kTestDialects[0], &kTestDialects[0]}));  // families may share one
}

TEST(Config, a_needed_key_that_is_missing_is_named_with_the_file) {
  for (const char* const key : {"model_type", "hidden_size", "num_hidden_layers", "intermediate_size",
                                "num_attention_heads", "vocab_size", "rms_norm_eps"}) {
    Json json = kLlama;
    json.erase(key);
    expect_error(ErrorCode::corrupt_file, {"dir/config.json", key},
                 [&] { parse_config(json, std::nullopt, "dir/config.json"); });
  }
  expect_error(ErrorCode::corrupt_file, {"c"}, [] { parse_config(Json::array(), std::nullopt, "c", test_dialects()); });
}

TEST(Config, values_of_wrong_type_or_size_are_named) {
  const auto bad = [](const char* key, const Json& value) {
    expect_error(ErrorCode::corrupt_file, {"dir/config.json", key}, [&] { parse({{key, value}}); });
  };
  for (const Json& value :
       {Json(0), Json(-1), Json("64"), Json(true), Json(1.5), Json(1e30), Json(1ll << 40), Json::array()})
    bad("hidden_size", value);
  bad("num_hidden_layers", 1000001);
  bad("num_key_value_heads", 3);
  bad("num_attention_heads", 7);
  bad("rms_norm_eps", -1.0);
  bad("rope_theta", 0);
  bad("tie_word_embeddings", "yes");
  bad("layer_types", Json::array({"full_attention"}));
  bad("layer_types", "full");
  bad("sliding_window", 0);
  bad("partial_rotary_factor", 1.5);
  bad("rope_scaling", 3);
  bad("eos_token_id", "x");
  bad("eos_token_id", Json::array({1, -2}));
  bad("quantization", 3);
  EXPECT_EQ(parse({{"hidden_size", 64.0}}).hidden, 64);
}

TEST(Config, end_ids_are_the_union_of_both_files) {
  EXPECT_EQ(parse({{"eos_token_id", 2}}, kLlama, Json{{"eos_token_id", {2, 7}}}).end_ids,
            (std::set<int>{2, 7}));
  EXPECT_EQ(parse({{"eos_token_id", {1, 3}}}).end_ids, (std::set<int>{1, 3}));
  EXPECT_TRUE(parse({{"eos_token_id", nullptr}}, kLlama, Json::object()).end_ids.empty());
}

TEST(Config, rope_scaling_is_typed_in_both_spellings) {
  const Config old = parse({{"rope_scaling",
                             {{"rope_type", "llama3"},
                              {"factor", 8.0},
                              {"low_freq_factor", 1.0},
                              {"high_freq_factor", 4.0},
                              {"original_max_position_embeddings", 8192}}}});
  ASSERT_TRUE(old.rope_scaling.has_value());
  EXPECT_EQ(old.rope_scaling->type, "llama3");
  EXPECT_EQ(old.rope_scaling->factor, 8.0);
  EXPECT_EQ(old.rope_scaling->original_max_position, 8192);
  EXPECT_TRUE(old.warnings.empty());

  const Json newer = {{"rope_parameters", {{"rope_type", "yarn"}, {"rope_theta", 5e5}, {"factor", 4.0}}}};
  const Config llama = parse(newer);
  EXPECT_EQ(llama.rope_theta, 5e5);
  EXPECT_EQ(llama.rope_scaling->type, "yarn");
  ASSERT_EQ(llama.warnings.size(), 1u);  // mlx-lm ignores the key for llama
  EXPECT_NE(llama.warnings[0].find("rope_parameters"), std::string::npos);
  Json qwen3 = newer;
  qwen3["model_type"] = "qwen3";
  EXPECT_TRUE(parse(qwen3).warnings.empty());
  EXPECT_NE(llama.departure.find("rope_parameters"), std::string::npos);
  EXPECT_TRUE(parse(qwen3).departure.empty());

  // Both spellings in one file: the older one wins where the oracle reads it first, or alone.
  Json both = newer;
  both["rope_theta"] = 7e5;
  both["rope_scaling"] = {{"type", "linear"}, {"factor", 2.0}};
  for (const char* type : {"llama", "qwen3"}) {
    both["model_type"] = type;
    EXPECT_EQ(parse(both).rope_theta, 7e5) << type;
    EXPECT_EQ(parse(both).rope_scaling->type, "linear") << type;
    EXPECT_TRUE(parse(both).departure.empty()) << type;
  }

  const Config plain = parse({{"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 3e5}}}});
  EXPECT_EQ(plain.rope_theta, 3e5);
  EXPECT_FALSE(plain.rope_scaling.has_value());
}

TEST(Config, a_null_for_the_tie_means_untied_and_an_absent_key_the_familys_own) {
  EXPECT_EQ(parse({{"tie_word_embeddings", nullptr}}).tie_word_embeddings, false);
  EXPECT_FALSE(parse(Json::object()).tie_word_embeddings.has_value());
}

TEST(Config, a_rotary_base_is_one_that_f32_holds) {
  for (const double theta : {0.0, -1.0, 1e39, 1e-300, std::numeric_limits<double>::infinity()})
    EXPECT_THROW(parse({{"rope_theta", theta}}), Error) << theta;
}

TEST(Config, rope_parameters_by_layer_type_fill_both_thetas) {
  const Json json = Json::parse(R"({"model_type":"gemma3_text","num_hidden_layers":6,
      "rope_parameters":{"full_attention":{"rope_type":"linear","factor":8.0,"rope_theta":2000000.0},
                         "sliding_attention":{"rope_type":"default","rope_theta":20000.0}},
      "layer_types":["sliding_attention","sliding_attention","full_attention",
                     "sliding_attention","sliding_attention","full_attention"]})");
  const Config config = parse_config(json, std::nullopt, "c", test_dialects());
  EXPECT_EQ(config.rope_theta, 2000000.0);
  EXPECT_EQ(config.rope_local_theta, 20000.0);
  EXPECT_EQ(config.rope_scaling->factor, 8.0);
  EXPECT_EQ(config.sliding_window_pattern, 6);  // the oracle goes by the default, whatever layer_types says
}

TEST(Config, a_nested_decoder_is_read_with_the_outer_vocabulary) {
  Json text = kLlama;
  text["model_type"] = "llama";
  const Config config = parse_config(
      Json{{"model_type", "mistral"}, {"text_config", text}, {"vocab_size", 100}}, std::nullopt, "c", test_dialects());
  EXPECT_EQ(config.model_type, "llama");
  EXPECT_EQ(config.vocabulary, 100);
  EXPECT_EQ(config.hidden, 64);
}

TEST(Config, tagged_floats_become_numbers) {
  const Config config = parse(
      {{"limits",
        Json::parse(R"([0.0,{"__float__":"Infinity"},{"__float__":"-Infinity"},{"__float__":"NaN"}])")}});
  const auto limits = config.numbers("limits");
  ASSERT_EQ(limits.size(), 4u);
  EXPECT_EQ(limits[1], INFINITY);
  EXPECT_EQ(limits[2], -INFINITY);
  EXPECT_TRUE(std::isnan(limits[3]));
}

TEST(Config, getters_of_raw_keys_name_file_and_key) {
  const Config config = parse({{"scale", 0.5}, {"flag", true}, {"name", "x"}, {"list", {1, 2}}});
  EXPECT_EQ(config.number("scale"), 0.5);
  EXPECT_EQ(config.number("none", 2.0), 2.0);
  EXPECT_TRUE(config.boolean("flag"));
  EXPECT_EQ(config.string("name"), "x");
  EXPECT_EQ(config.integers("list"), (std::vector<int>{1, 2}));
  EXPECT_EQ(config.integer("none", -1), -1);
  expect_error(ErrorCode::corrupt_file, {"dir/config.json", "none"}, [&] { config.integer("none"); });
  expect_error(ErrorCode::corrupt_file, {"dir/config.json", "scale"}, [&] { config.integer("scale"); });
}

TEST(Config, quantization_maps_hold_defaults_overrides_and_false) {
  const Json map = Json::parse(
      R"({"group_size":128,"bits":4,"a.p":{"bits":6,"group_size":128},"a.q":{"bits":8},"lm_head":false})");
  for (const char* const key : {"quantization", "quantization_config"}) {
    const QuantizationMap& read = parse({{key, map}}).quantization;
    EXPECT_EQ(read.defaults(), (QuantSpec{WeightKind::affine, 4, 128}));
    EXPECT_EQ(read.of("a.p").spec, (QuantSpec{WeightKind::affine, 6, 128}));
    EXPECT_EQ(read.of("a.q").spec,
              (QuantSpec{WeightKind::affine, 8, 128}));  // what is left out comes from the defaults
    EXPECT_EQ(read.of("lm_head").says, QuantizationMap::Says::dense);
    EXPECT_EQ(read.of("other").says, QuantizationMap::Says::nothing);
  }
  EXPECT_EQ(parse({{"quantization", {{"mode", "mxfp4"}, {"group_size", 32}, {"bits", 4}}}})
                .quantization.defaults()
                ->kind,
            WeightKind::mxfp4);
}

TEST(Config, quantization_that_cannot_be_read_is_refused_by_name) {
  const auto bad = [](const Json& map, const std::string& says) {
    expect_error(ErrorCode::unsupported, {"dir/config.json", says}, [&] { parse({{"quantization", map}}); });
  };
  bad({{"bits", 7}, {"group_size", 64}}, "7-bit");
  bad({{"bits", 4}, {"group_size", 48}}, "group 48");
  bad({{"mode", "mxfp4"}, {"bits", 8}, {"group_size", 32}}, "mxfp4");
  bad({{"mode", "fancy"}, {"bits", 4}, {"group_size", 64}}, "fancy");
  bad({{"quant_method", "gptq"}, {"bits", 4}, {"group_size", 128}}, "gptq");
}

TEST(Config, a_folder_is_read_with_its_generation_config) {
  const auto folder = fresh_folder("config");
  expect_error(ErrorCode::not_found, {"config.json"}, [&] { read_config(folder); });
  write_file(folder / "config.json", "{\"model_type\":");
  expect_error(ErrorCode::corrupt_file, {"config.json"}, [&] { read_config(folder); });
  write_file(folder / "config.json", kLlama.dump());
  write_file(folder / "generation_config.json", R"({"eos_token_id":5})");
  EXPECT_EQ(read_config(folder).end_ids, (std::set<int>{5}));
  // Python's own spelling of numbers that JSON lacks; the same words inside a string are text.
  std::string text = kLlama.dump();
  text.insert(1, R"("limits":[0.0,Infinity,-Infinity,NaN],"note":"NaN \"Infinity",)");
  write_file(folder / "config.json", text);
  const Config config = read_config(folder);
  EXPECT_EQ(config.numbers("limits")[1], INFINITY);
  EXPECT_EQ(config.numbers("limits")[2], -INFINITY);
  EXPECT_TRUE(std::isnan(config.numbers("limits")[3]));
  EXPECT_EQ(config.string("note"), "NaN \"Infinity");
}

}  // namespace
}  // namespace godwit::checkpoint
