#include "seeds.h"

#include <fmt/format.h>

#include "cache/cold_record.h"
#include "checkpoint/test_files.h"
#include "turn_reader.h"

namespace godwit::fuzz {
namespace {

using checkpoint::GgufBytes;

GgufBytes gguf_head(const std::string& arch) {
  GgufBytes gguf;
  gguf.string("general.architecture", arch)
      .u32(arch + ".block_count", 1)
      .u32(arch + ".embedding_length", 256)
      .u32(arch + ".feed_forward_length", 256)
      .u32(arch + ".attention.head_count", 4)
      .u32(arch + ".attention.head_count_kv", 2)
      .f32(arch + ".attention.layer_norm_rms_epsilon", 1e-6f)
      .f32(arch + ".rope.freq_base", 10000.0f);
  return gguf;
}

std::vector<std::string> gguf_seeds() {
  struct Block {
    std::uint32_t type, elements, bytes;
  };
  GgufBytes blocks = gguf_head("llama");
  for (const Block& of :
       {Block{2, 32, 18}, Block{3, 32, 20}, Block{6, 32, 22}, Block{7, 32, 24}, Block{8, 32, 34},
        Block{10, 256, 84}, Block{11, 256, 110}, Block{12, 256, 144}, Block{13, 256, 176},
        Block{14, 256, 210}, Block{20, 32, 18}, Block{23, 256, 136}, Block{39, 32, 17}})
    blocks.tensor(fmt::format("blk.0.t{}.weight", of.type), {of.elements, 2}, of.type,
                  std::string(2 * of.bytes, '\x3c'));
  blocks.tensor("token_embd.weight", {256, 1}, 1, std::string(512, '\0'));
  GgufBytes rows = gguf_head("llama");
  rows.tensor("blk.0.attn_q.weight", {256, 8}, 8, std::string(8 * 8 * 34, '\1'))
      .tensor("blk.0.attn_k.bias", {8}, 0, std::string(32, '\0'))
      .tensor("token_embd.weight", {256, 3}, 14, std::string(3 * 210, '\2'))
      .string("tokenizer.ggml.model", "gpt2")
      .strings("tokenizer.ggml.tokens", {"a", "b", "c"})
      .strings("tokenizer.ggml.merges", {"a b"})
      .u32("tokenizer.ggml.eos_token_id", 2);
  GgufBytes gemma = gguf_head("gemma3");
  gemma
      .pair("gemma3.attention.sliding_window_pattern", 9,
            checkpoint::le(std::uint32_t{7}) + checkpoint::le(std::uint64_t{1}) + std::string(1, '\1'))
      .string("gemma3.rope.scaling.type", "linear")
      .f32("gemma3.rope.scaling.factor", 8)
      .u32("gemma3.attention.key_length", 64)
      .u32("general.alignment", 32)
      .tensor("output_norm.weight", {256}, 0, std::string(1024, '\0'));
  return {blocks.bytes(), rows.bytes(), gemma.bytes()};
}

std::vector<std::string> safetensors_seeds() {
  const auto file = [](const std::string& header, std::size_t bytes) {
    return checkpoint::safetensors_bytes(header, std::string(bytes, '\x3c'));
  };
  return {
      file(
          R"({"__metadata__":{"format":"pt"},"a.weight":{"dtype":"BF16","shape":[2,4],"data_offsets":[0,16]},)"
          R"("b":{"dtype":"F32","shape":[],"data_offsets":[16,20]}})",
          20),
      file(
          R"({"p.weight":{"dtype":"U32","shape":[2,8],"data_offsets":[0,64]},"p.scales":{"dtype":"F16",)"
          R"("shape":[2,1],"data_offsets":[64,68]},"p.biases":{"dtype":"F16","shape":[2,1],"data_offsets":[68,72]}})",
          72),
      file(R"({"e":{"dtype":"F8_E8M0","shape":[0,3],"data_offsets":[0,0]},"c":{"dtype":"C64","shape":[1],)"
           R"("data_offsets":[0,8]}})",
           8)};
}

std::vector<std::string> config_seeds() {
  return {
      R"({"model_type":"llama","hidden_size":64,"num_hidden_layers":2,"intermediate_size":128,"num_attention_heads":4,
  "num_key_value_heads":2,"vocab_size":96,"rms_norm_eps":1e-5,"rope_theta":10000.0,"eos_token_id":[1,2],"rope_scaling":
  {"rope_type":"llama3","factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0,"original_max_position_embeddings":64},
  "quantization":{"group_size":64,"bits":4,"model.layers.0.mlp":{"bits":8,"group_size":32,"mode":"affine"},"lm_head":false}})",
      R"({"model_type":"gemma3_text","layer_types":["sliding_attention","full_attention"],"num_hidden_layers":2,
  "rope_parameters":{"full_attention":{"rope_type":"yarn","rope_theta":1e6,"factor":2,"long_factor":[1.0,{"__float__":"NaN"}]},
  "sliding_attention":{"rope_theta":1e4}},"sliding_window_pattern":6,"torch_dtype":"bfloat16"})",
      R"({"model_type":"llava","vocab_size":7,"text_config":{"model_type":"mistral","hidden_size":8,"num_hidden_layers":1,
  "intermediate_size":8,"num_attention_heads":1,"vocab_size":8,"norm_eps":0.5,"partial_rotary_factor":0.5}})"};
}

std::string cold_file(const std::vector<std::size_t>& sizes, std::size_t tokens) {
  const std::string content(10000, '\x3c');
  cache::ColdRecord record;
  record.signature = "model=m;kv=f32";
  record.tokens.assign(tokens, 77);
  record.metadata = "{}";
  for (const std::size_t size : sizes)
    record.parts.push_back({.bytes = std::as_bytes(std::span(content).first(size)), .owner = nullptr});
  const auto front = cache::encode_front(record);
  std::string bytes(reinterpret_cast<const char*>(front.data()), front.size());
  for (const std::size_t size : sizes)
    bytes += content.substr(0, size) + std::string(cache::padded(size) - size, '\0');
  return bytes;
}

}  // namespace

std::vector<std::string> seeds(std::string_view reader) {
  if (reader == "gguf") return gguf_seeds();
  if (reader == "turn") return turn_seeds();
  if (reader == "cold_record") return {cold_file({}, 0), cold_file({100, 0, 5000}, 64), cold_file({1}, 3)};
  return reader == "safetensors" ? safetensors_seeds() : config_seeds();
}

}  // namespace godwit::fuzz
