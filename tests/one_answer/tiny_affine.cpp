#include "one_answer/tiny_affine.h"

#include <random>

#include "checkpoint/safetensors_writer.h"
#include "checkpoint/test_files.h"
#include "one_answer/tiny_gguf.h"

namespace godwit::one_answer {
namespace {

using checkpoint::TensorFormat;

constexpr std::uint64_t kHidden = 128, kHeads = 2, kKvHeads = 1, kHeadDim = 64, kInner = 192;

class Writer {
 public:
  // Around one.
  void norm(const std::string& name) {
    std::string data;
    for (std::uint64_t i = 0; i < kHidden; ++i) data += bf16(1.0f + float(int(random_() % 9) - 4) / 16);
    add(name + ".weight", TensorFormat::bf16, {kHidden}, std::move(data));
  }
  // Any codes; steps around 2^-6 for 4 bits, whose middle the bias moves to zero.
  void matrix(const std::string& name, std::uint64_t rows, std::uint64_t columns, std::uint64_t bits = 4,
              std::uint64_t group = 64) {
    std::string codes, scales, biases;
    for (std::uint64_t i = 0; i < rows * columns * bits / 8; ++i) codes += static_cast<char>(random_());
    for (std::uint64_t i = 0; i < rows * columns / group; ++i) {
      const float scale = (1.0f + float(random_() % 64) / 64) / float(4 << bits);
      scales += bf16(scale);
      biases += bf16(-scale * float(1 << bits) / 2);
    }
    add(name + ".weight", TensorFormat::u32, {rows, columns * bits / 32}, std::move(codes));
    add(name + ".scales", TensorFormat::bf16, {rows, columns / group}, std::move(scales));
    add(name + ".biases", TensorFormat::bf16, {rows, columns / group}, std::move(biases));
  }
  void write(const std::filesystem::path& file) {
    for (std::size_t i = 0; i < tensors_.size(); ++i)
      tensors_[i].bytes = std::as_bytes(std::span(data_[i].data(), data_[i].size()));
    checkpoint::write_safetensors(file, tensors_);
  }

 private:
  static std::string bf16(float value) { return checkpoint::le(value).substr(2); }
  void add(const std::string& name, TensorFormat format, std::vector<std::uint64_t> shape, std::string data) {
    tensors_.push_back({name, format, std::move(shape), {}});
    data_.push_back(std::move(data));
  }

  std::mt19937 random_{1};
  std::vector<checkpoint::TensorToWrite> tensors_;
  std::vector<std::string> data_;
};

constexpr const char* kConfig = R"({"model_type": "llama", "hidden_size": 128, "num_hidden_layers": 2,
"intermediate_size": 192, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 64, "vocab_size": 96,
"max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": true,
"quantization": {"group_size": 64, "bits": 4, "model.embed_tokens": {"group_size": 128, "bits": 8}}})";

}  // namespace

void write_affine_model(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  checkpoint::write_file(folder / "config.json", kConfig);
  Writer writer;
  writer.matrix("model.embed_tokens", kVocabulary, kHidden, 8, 128);
  for (const char* index : {"0", "1"}) {
    const std::string layer = std::string("model.layers.") + index + ".";
    writer.norm(layer + "input_layernorm");
    writer.matrix(layer + "self_attn.q_proj", kHeads * kHeadDim, kHidden);
    writer.matrix(layer + "self_attn.k_proj", kKvHeads * kHeadDim, kHidden);
    writer.matrix(layer + "self_attn.v_proj", kKvHeads * kHeadDim, kHidden);
    writer.matrix(layer + "self_attn.o_proj", kHidden, kHeads * kHeadDim);
    writer.norm(layer + "post_attention_layernorm");
    writer.matrix(layer + "mlp.gate_proj", kInner, kHidden);
    writer.matrix(layer + "mlp.up_proj", kInner, kHidden);
    writer.matrix(layer + "mlp.down_proj", kHidden, kInner);
  }
  writer.norm("model.norm");
  writer.write(folder / "model.safetensors");
}

}  // namespace godwit::one_answer
