#include "one_answer/tiny_gguf.h"

#include <unistd.h>

#include <random>

#include "one_answer/gguf_writer.h"

namespace godwit::one_answer {
namespace {

constexpr std::uint64_t kHidden = 64, kHeads = 2, kKvHeads = 1, kHeadDim = 64, kInner = 96;

void write_layer(GgufWriter& writer, const std::string& layer, bool slides) {
  writer.norm(layer + "attn_norm", kHidden);
  writer.matrix(layer + "attn_q", kHeads * kHeadDim, kHidden);
  writer.matrix(layer + "attn_k", kKvHeads * kHeadDim, kHidden);
  writer.matrix(layer + "attn_v", kKvHeads * kHeadDim, kHidden);
  writer.matrix(layer + "attn_output", kHidden, kHeads * kHeadDim);
  writer.norm(layer + "ffn_norm", kHidden);
  writer.matrix(layer + "ffn_gate", kInner, kHidden);
  writer.matrix(layer + "ffn_up", kInner, kHidden);
  writer.matrix(layer + "ffn_down", kHidden, kInner);
  if (!slides) return;
  writer.norm(layer + "attn_q_norm", kHeadDim);
  writer.norm(layer + "attn_k_norm", kHeadDim);
  writer.norm(layer + "post_attention_norm", kHidden);
  writer.norm(layer + "post_ffw_norm", kHidden);
}

}  // namespace

void write_model(const std::filesystem::path& path, bool slides, unsigned seed) {
  const std::string name = slides ? "gemma3" : "llama";
  const std::uint32_t layers = slides ? 4 : 2;
  checkpoint::GgufBytes file;
  file.string("general.architecture", name)
      .u32(name + ".block_count", layers)
      .u32(name + ".embedding_length", kHidden)
      .u32(name + ".feed_forward_length", kInner)
      .u32(name + ".attention.head_count", kHeads)
      .u32(name + ".attention.head_count_kv", kKvHeads)
      .u32(name + ".attention.key_length", kHeadDim)
      .u32(name + ".context_length", 8192)
      .f32(name + ".attention.layer_norm_rms_epsilon", 1e-5f);
  if (slides)
    file.u32(name + ".attention.sliding_window", kWindow)
        .u32(name + ".attention.sliding_window_pattern", 2)
        .f32(name + ".rope.freq_base", 1e6f);  // of the full layers; those that slide turn by 1e4
  GgufWriter writer(file, seed);
  writer.matrix("token_embd", kVocabulary, kHidden);
  for (std::uint32_t i = 0; i < layers; ++i) write_layer(writer, "blk." + std::to_string(i) + ".", slides);
  writer.norm("output_norm", kHidden);
  checkpoint::write_file(path, file.bytes());
}

std::unique_ptr<models::ModelBundle> open_model(const std::filesystem::path& file, NumericMode mode,
                                                std::optional<kernels::ActivationForm> activations,
                                                models::PlanUse plan) {
  models::ModelOptions options;
  options.path = file;
  options.id = file.filename().string();
  options.mode = mode;
  options.activations = activations;
  options.plan = plan;
  options.threads = 1;  // another number changes no bit (native_test of the oracle suite), only time
  return models::ModelBundle::open(options, Log());
}

std::vector<int> random_tokens(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<int> tokens(count);
  for (int& token : tokens) token = static_cast<int>(random() % kVocabulary);
  return tokens;
}

Folder::Folder() {
  static int number = 0;
  const bool has_memory = ::access("/dev/shm", W_OK | X_OK) == 0;
  const std::filesystem::path root = has_memory ? "/dev/shm" : std::filesystem::temp_directory_path();
  path_ = root / ("godwit_one_answer_" + std::to_string(::getpid()) + "_" + std::to_string(number++));
  std::filesystem::remove_all(path_);
  std::filesystem::create_directories(path_);
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace godwit::one_answer
