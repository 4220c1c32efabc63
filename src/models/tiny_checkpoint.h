// A two-layer llama checkpoint for the tests of this module, written by MLX's own safetensors writer.
#pragma once

#include <gtest/gtest.h>
#include <mlx/io.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <unordered_map>

#include "base/error.h"
#include "base/json.h"
#include "base/mx_ops.h"
#include "models/model_bundle.h"

namespace godwit::models {

class TinyCheckpoint {
 public:
  TinyCheckpoint()
      : folder(
            std::filesystem::temp_directory_path() /
            (std::string("godwit_models_") + testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    add("model.embed_tokens.weight", {12, 8});
    add("model.norm.weight", {8});
    for (const std::string layer : {"0", "1"}) {
      const std::string path = "model.layers." + layer + ".";
      for (const char* name : {"q", "k", "v", "o"}) add(path + "self_attn." + name + "_proj.weight", {8, 8});
      add(path + "mlp.gate_proj.weight", {16, 8});
      add(path + "mlp.up_proj.weight", {16, 8});
      add(path + "mlp.down_proj.weight", {8, 16});
      add(path + "input_layernorm.weight", {8});
      add(path + "post_attention_layernorm.weight", {8});
    }
  }
  ~TinyCheckpoint() { std::filesystem::remove_all(folder); }

  void add(const std::string& name, const mx::Shape& shape) {
    mx::array values = mx::arange(1.0, 1.0 + shape_size(shape), mx::float32);
    tensors.insert_or_assign(
        name, mx::sin(mx::reshape(values * mx::array(0.7f + 0.01f * float(tensors.size())), shape)));
  }
  // Two heads of this size in place of 4 elements.
  void set_head_dim(int dim) {
    config["head_dim"] = dim;
    for (const std::string layer : {"0", "1"}) {
      const std::string path = "model.layers." + layer + ".self_attn.";
      for (const char* name : {"q", "k", "v"}) add(path + name + "_proj.weight", {2 * dim, 8});
      add(path + "o_proj.weight", {8, 2 * dim});
    }
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder / name, std::ios::binary) << text;
  }
  // Writes config.json and the tensors, and opens.
  std::unique_ptr<ModelBundle> open(const std::function<void(ModelOptions&)>& change = {}) const {
    write("config.json", config.dump());
    if (!tensors.empty()) mx::save_safetensors((folder / "model.safetensors").string(), tensors);
    ModelOptions options;
    options.path = folder;
    options.id = "tiny";
    if (change) change(options);
    return ModelBundle::open(options, Log());
  }

  std::filesystem::path folder;
  Json config = {{"model_type", "llama"},    {"hidden_size", 8},
                 {"num_hidden_layers", 2},   {"intermediate_size", 16},
                 {"num_attention_heads", 2}, {"vocab_size", 12},
                 {"rms_norm_eps", 1e-5},     {"max_position_embeddings", 64},
                 {"eos_token_id", 2}};
  std::unordered_map<std::string, mx::array> tensors;

 private:
  static double shape_size(const mx::Shape& shape) {
    double size = 1;
    for (const int dim : shape) size *= dim;
    return size;
  }
};

// A word-level vocabulary: "w0" .. "w9" and the end tokens a test names, all of them special.
inline std::string word_tokenizer(const std::vector<std::string>& special) {
  Json vocabulary = Json::object(), added = Json::array();
  for (int id = 0; id < 10; ++id) vocabulary["w" + std::to_string(id)] = id;
  for (const std::string& token : special) {
    const int id = static_cast<int>(vocabulary.size());
    vocabulary[token] = id;
    added.push_back({{"id", id},
                     {"content", token},
                     {"special", true},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false}});
  }
  return Json{{"version", "1.0"},
              {"added_tokens", added},
              {"pre_tokenizer", {{"type", "Whitespace"}}},
              {"model", {{"type", "WordLevel"}, {"vocab", vocabulary}, {"unk_token", "w0"}}}}
      .dump();
}

// The message of the Error that `body` throws; any other outcome fails the test.
inline std::string message_of(ErrorCode code, const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

inline testing::AssertionResult names(const std::string& message,
                                      std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words)
    if (message.find(word) == std::string::npos)
      return testing::AssertionFailure() << "no '" << word << "' in: " << message;
  return testing::AssertionSuccess();
}

}  // namespace godwit::models
