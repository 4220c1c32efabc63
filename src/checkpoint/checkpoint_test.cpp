#include "checkpoint/checkpoint.h"
#include "checkpoint/test_dialects.h"

#include "base/mx_ops.h"
#include "checkpoint/test_files.h"

namespace godwit::checkpoint {
namespace {

constexpr std::uint32_t kF32 = 0, kQ8_0 = 8;

std::string floats(const std::vector<float>& values) {
  std::string bytes;
  for (const float value : values) bytes += le(value);
  return bytes;
}
std::string ramp(int count) {
  std::vector<float> values;
  for (int i = 0; i < count; ++i) values.push_back(static_cast<float>(i));
  return floats(values);
}

// One block of 32 equal values for each row: row r holds r.
std::string labelled_rows(int rows) {
  std::string bytes;
  for (int row = 0; row < rows; ++row)
    bytes += le(std::uint16_t{0x3c00}) + std::string(32, static_cast<char>(row));
  return bytes;
}

GgufBytes header(const std::string& arch) {
  GgufBytes gguf;
  gguf.string("general.architecture", arch)
      .u32(arch + ".block_count", 1)
      .u32(arch + ".embedding_length", 32)
      .u32(arch + ".feed_forward_length", 64)
      .u32(arch + ".attention.head_count", 4)
      .u32(arch + ".attention.head_count_kv", 2)
      .u32(arch + ".context_length", 128)
      .f32(arch + ".attention.layer_norm_rms_epsilon", 1e-6f)
      .f32(arch + ".rope.freq_base", 50000.0f);
  return gguf;
}

Checkpoint open_bytes(const GgufBytes& gguf) {
  return Checkpoint::open(write_file(fresh_folder("checkpoint") / "m.gguf", gguf.bytes()), test_dialects());
}

TEST(Checkpoint, a_folder_is_described_without_opening_a_tensor_file) {
  const auto folder = fresh_folder("described");
  write_file(folder / "config.json", R"({"model_type":"llama","hidden_size":64,"num_hidden_layers":4,
      "intermediate_size":128,"num_attention_heads":4,"vocab_size":96,"rms_norm_eps":1e-5})");
  // Opening this one would fail: it is a folder, which cannot be mapped.
  std::filesystem::create_directories(folder / "model.safetensors");
  const Checkpoint checkpoint = Checkpoint::open(folder, test_dialects());
  EXPECT_EQ(checkpoint.config().layers, 4);
  EXPECT_FALSE(checkpoint.is_gguf());
  expect_error(ErrorCode::io, {"model.safetensors"}, [&] { checkpoint.weights(); });
}

TEST(Checkpoint, paths_that_hold_no_model_are_named) {
  expect_error(ErrorCode::not_found, {"/nowhere/at/all"}, [] { Checkpoint::open("/nowhere/at/all", {}); });
  const auto folder = fresh_folder("empty");
  expect_error(ErrorCode::not_found, {"config.json", ".gguf"}, [&] { Checkpoint::open(folder, test_dialects()); });
  expect_error(ErrorCode::corrupt_file, {"x.txt"},
               [&] { Checkpoint::open(write_file(folder / "x.txt", "hello world"), {}); });
}

TEST(Checkpoint, gguf_metadata_becomes_a_config) {
  const Config config =
      open_bytes(header("llama").tensor("token_embd.weight", {32, 7}, kF32, ramp(7 * 32))).config();
  EXPECT_EQ(config.model_type, "llama");
  EXPECT_TRUE(config.from_gguf);
  EXPECT_EQ(config.hidden, 32);
  EXPECT_EQ(config.intermediate, 64);
  EXPECT_EQ(config.heads, 4);
  EXPECT_EQ(config.kv_heads, 2);
  EXPECT_EQ(config.head_dim, 8);
  EXPECT_EQ(config.vocabulary, 7);
  EXPECT_EQ(config.rope_theta, 50000.0);
  EXPECT_EQ(static_cast<float>(config.norm_eps), 1e-6f);
  EXPECT_EQ(config.max_position_embeddings, 128);
  EXPECT_EQ(config.tie_word_embeddings, true);  // no output.weight
}

TEST(Checkpoint, a_gguf_beside_a_config_describes_itself) {
  const auto folder = fresh_folder("beside");
  write_file(folder / "config.json", "{}");
  write_file(folder / "m.gguf",
             header("llama").tensor("token_embd.weight", {32, 7}, kF32, ramp(7 * 32)).bytes());
  const Checkpoint checkpoint = Checkpoint::open(folder, test_dialects());
  EXPECT_TRUE(checkpoint.is_gguf());
  EXPECT_EQ(checkpoint.config().vocabulary, 7);
  write_file(folder / "other.gguf", "");
  expect_error(ErrorCode::invalid_argument, {"holds 2 .gguf files"}, [&] { Checkpoint::open(folder, test_dialects()); });
}

TEST(Checkpoint, gguf_says_how_many_values_of_a_head_are_turned_in_pairs) {
  const auto open_with = [](std::uint32_t count) {
    return open_bytes(header("llama")
                          .u32("llama.rope.dimension_count", count)
                          .tensor("token_embd.weight", {32, 7}, kF32, ramp(7 * 32)))
        .config();
  };
  EXPECT_EQ(open_with(8).partial_rotary_factor, 1.0);  // heads of 8
  EXPECT_EQ(open_with(4).partial_rotary_factor, 0.5);
  for (const std::uint32_t count : {0u, 3u, 10u, 1u << 31})
    expect_error(ErrorCode::corrupt_file, {"llama.rope.dimension_count", std::to_string(count)},
                 [&] { open_with(count); });
}

TEST(Checkpoint, gguf_rope_scaling_is_read_in_every_spelling) {
  const auto scaling = [](GgufBytes gguf) {
    return open_bytes(gguf.tensor("token_embd.weight", {32, 7}, kF32, ramp(7 * 32))).config().rope_scaling;
  };
  EXPECT_FALSE(scaling(header("llama")).has_value());
  EXPECT_FALSE(
      scaling(header("llama").string("llama.rope.scaling.type", "none").f32("llama.rope.scaling.factor", 4)));
  for (GgufBytes gguf : {header("llama").f32("llama.rope.scaling.factor", 4),
                         header("llama").f32("llama.rope.scale_linear", 4)}) {
    const auto linear = scaling(std::move(gguf));
    ASSERT_TRUE(linear.has_value());
    EXPECT_EQ(linear->type, "linear");
    EXPECT_EQ(linear->factor, 4.0);
  }
  const auto yarn = scaling(header("llama")
                                .string("llama.rope.scaling.type", "yarn")
                                .f32("llama.rope.scaling.factor", 2)
                                .u32("llama.rope.scaling.original_context_length", 64));
  EXPECT_EQ(yarn->type, "yarn");
  EXPECT_EQ(yarn->original_max_position, 64);
  expect_error(ErrorCode::unsupported, {"m.gguf", "llama.rope.scaling.type", "odd"}, [&] {
    scaling(header("llama").string("llama.rope.scaling.type", "odd").f32("llama.rope.scaling.factor", 2));
  });
}

TEST(Checkpoint, gguf_without_a_needed_key_or_of_unknown_kind_is_refused_by_name) {
  expect_error(ErrorCode::corrupt_file, {"m.gguf", "general.architecture"},
               [] { open_bytes(GgufBytes().u32("a.b", 1)); });
  expect_error(ErrorCode::unsupported, {"m.gguf", "mamba", "llama", "gemma3"},
               [] { open_bytes(GgufBytes().string("general.architecture", "mamba")); });
  expect_error(ErrorCode::corrupt_file, {"m.gguf", "llama.block_count"},
               [] { open_bytes(GgufBytes().string("general.architecture", "llama")); });
  expect_error(ErrorCode::corrupt_file, {"m.gguf", "llama.block_count", "integer"}, [] {
    open_bytes(GgufBytes().string("general.architecture", "llama").string("llama.block_count", "x"));
  });
}

TEST(Checkpoint, a_dialect_fills_what_its_files_leave_out) {
  const Checkpoint checkpoint = open_bytes(header("gemma3")
                                               .u32("gemma3.attention.key_length", 16)
                                               .u32("gemma3.attention.sliding_window", 64)
                                               .tensor("token_embd.weight", {32, 7}, kF32, ramp(7 * 32)));
  const Config& config = checkpoint.config();
  EXPECT_EQ(config.model_type, "gemma3_text");
  EXPECT_EQ(config.head_dim, 16);
  EXPECT_EQ(config.query_pre_attn_scalar, 16.0);
  EXPECT_EQ(config.sliding_window, 64);
  EXPECT_EQ(config.sliding_window_pattern, 6);
  EXPECT_EQ(config.rope_local_theta, 10000.0);
  EXPECT_TRUE(checkpoint.weights()->norms_include_one());
}

TEST(Checkpoint, gguf_names_become_graph_names) {
  GgufBytes gguf = header("gemma3");
  for (const char* const name :
       {"output_norm.weight", "blk.0.attn_norm.weight", "blk.0.post_attention_norm.weight",
        "blk.0.ffn_norm.weight", "blk.0.post_ffw_norm.weight", "blk.0.attn_q_norm.weight"})
    gguf.tensor(name, {32}, kF32, ramp(32));
  gguf.tensor("blk.0.ffn_down.weight", {64, 32}, kF32, ramp(64 * 32)).tensor("odd.thing", {1}, kF32, ramp(1));
  gguf.tensor("token_embd.weight", {32, 7}, kF32, ramp(7 * 32));
  const auto store = open_bytes(gguf).weights();
  EXPECT_EQ(store->names(),
            (std::vector<std::string>{
                "model.embed_tokens.weight", "model.layers.0.input_layernorm.weight",
                "model.layers.0.mlp.down_proj.weight", "model.layers.0.post_attention_layernorm.weight",
                "model.layers.0.post_feedforward_layernorm.weight",
                "model.layers.0.pre_feedforward_layernorm.weight", "model.layers.0.self_attn.q_norm.weight",
                "model.norm.weight", "odd.thing"}));
}

// The values of column 0, or of a vector.
std::vector<int> labels(mx::array values) {
  if (values.ndim() == 2) values = mx::take(values, mx::array(0), 1);
  values = mx::astype(values, mx::int32);
  values.eval();
  return {values.data<int>(), values.data<int>() + values.size()};
}

// Per head of 8 rows labelled in stored order.
std::vector<int> unpermuted(int heads) {
  std::vector<int> rows;
  for (int head = 0; head < heads; ++head)
    for (const int row : {0, 2, 4, 6, 1, 3, 5, 7}) rows.push_back(head * 8 + row);
  return rows;
}

TEST(Checkpoint, q_and_k_rows_of_llama_files_return_to_half_split_order) {
  const auto store = open_bytes(header("llama")
                                    .tensor("blk.0.attn_q.weight", {32, 32}, kQ8_0, labelled_rows(32))
                                    .tensor("blk.0.attn_q.bias", {32}, kF32, ramp(32))
                                    .tensor("blk.0.attn_k.weight", {32, 16}, kQ8_0, labelled_rows(16))
                                    .tensor("blk.0.attn_v.weight", {32, 16}, kQ8_0, labelled_rows(16))
                                    .tensor("token_embd.weight", {32, 7}, kF32, ramp(7 * 32)))
                         .weights();
  const WeightScope attn = WeightScope(store, "model.layers.0.self_attn");
  EXPECT_EQ(labels((attn / "q_proj").matrix(32, 32).dequantize(mx::float32)), unpermuted(4));
  EXPECT_EQ(labels((attn / "q_proj").dense("bias", {32})), unpermuted(4));
  EXPECT_EQ(labels((attn / "k_proj").matrix(16, 32).dequantize(mx::float32)), unpermuted(2));
  std::vector<int> in_order(16);
  for (int i = 0; i < 16; ++i) in_order[static_cast<std::size_t>(i)] = i;
  EXPECT_EQ(labels((attn / "v_proj").matrix(16, 32).dequantize(mx::float32)), in_order);
}

TEST(Checkpoint, qwen_rows_stay_in_file_order) {
  const auto store = open_bytes(header("qwen2")
                                    .tensor("blk.0.attn_q.weight", {32, 32}, kQ8_0, labelled_rows(32))
                                    .tensor("token_embd.weight", {32, 7}, kF32, ramp(7 * 32)))
                         .weights();
  const auto rows =
      labels(WeightScope(store, "model.layers.0.self_attn.q_proj").matrix(32, 32).dequantize(mx::float32));
  EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end()));
}

TEST(Checkpoint, the_tokenizer_of_a_gguf_comes_as_plain_values) {
  const Checkpoint checkpoint = open_bytes(header("llama")
                                               .string("tokenizer.ggml.model", "gpt2")
                                               .string("tokenizer.ggml.pre", "smollm")
                                               .strings("tokenizer.ggml.tokens", {"a", "b", "ab"})
                                               .strings("tokenizer.ggml.merges", {"a b"})
                                               .u32("tokenizer.ggml.eos_token_id", 2)
                                               .u32("tokenizer.ggml.padding_token_id", 0xffffffff)
                                               .pair("tokenizer.ggml.add_bos_token", 7, std::string(1, '\0'))
                                               .string("tokenizer.chat_template", "{{ x }}"));
  ASSERT_TRUE(checkpoint.gguf_tokenizer().has_value());
  const GgufTokenizer& tokenizer = *checkpoint.gguf_tokenizer();
  EXPECT_EQ(tokenizer.model, "gpt2");
  EXPECT_EQ(tokenizer.pre, "smollm");
  EXPECT_EQ(tokenizer.tokens, (StringList{"a", "b", "ab"}));
  EXPECT_EQ(tokenizer.merges, (StringList{"a b"}));
  EXPECT_EQ(tokenizer.eos_id, 2);
  EXPECT_FALSE(tokenizer.padding_id.has_value());
  EXPECT_EQ(tokenizer.add_bos, false);
  EXPECT_FALSE(tokenizer.add_eos.has_value());
  EXPECT_EQ(checkpoint.gguf_chat_template(), "{{ x }}");
  EXPECT_EQ(checkpoint.config().end_ids, (std::set<int>{2}));
  EXPECT_EQ(checkpoint.config().vocabulary, 3);
}

TEST(Checkpoint, a_token_id_outside_the_vocabulary_is_refused) {
  expect_error(ErrorCode::corrupt_file, {"m.gguf", "eos_token_id", "9"}, [] {
    open_bytes(header("llama")
                   .string("tokenizer.ggml.model", "gpt2")
                   .strings("tokenizer.ggml.tokens", {"a"})
                   .u32("tokenizer.ggml.eos_token_id", 9));
  });
}

}  // namespace
}  // namespace godwit::checkpoint
