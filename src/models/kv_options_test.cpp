// The KV policy of an opened model: where it comes from and when it is refused.
#include "checkpoint/test_files.h"
#include "models/model_bundle.h"
#include "models/tiny_checkpoint.h"

namespace godwit::models {
namespace {

// Heads of 32 elements, and a tensor file that no reader accepts: an error about it would show that it was
// opened.
TinyCheckpoint with_spoiled_tensors() {
  TinyCheckpoint checkpoint;
  checkpoint.config["head_dim"] = 32;
  checkpoint.tensors.clear();
  checkpoint.write("model.safetensors", "spoiled");
  return checkpoint;
}

std::string refused(const TinyCheckpoint& checkpoint, ErrorCode code, std::string_view kv) {
  return message_of(code, [&] {
    checkpoint.open([&](ModelOptions& options) { options.kv = cache::parse_kv_policy(kv); });
  });
}

TEST(KvOptions, APolicyThatALayerCannotServeIsRefusedBeforeAnyTensorFileIsOpened) {
  EXPECT_TRUE(names(refused(with_spoiled_tensors(), ErrorCode::unsupported, "affine:4:64"),
                    {"layer 0", "affine:4:64", "32"}));
  EXPECT_TRUE(
      names(refused(with_spoiled_tensors(), ErrorCode::unsupported, "turbo:8:3"), {"layer 0", "turbo:8:3"}));
  refused(with_spoiled_tensors(), ErrorCode::corrupt_file, "affine:4:32");  // the bait is one
}

TEST(KvOptions, HeadsThatNativeAttentionDoesNotTakeAreRefusedBeforeAnyTensorFileIsOpened) {
  TinyCheckpoint checkpoint = with_spoiled_tensors();
  checkpoint.config["head_dim"] = 4;
  EXPECT_TRUE(names(message_of(ErrorCode::unsupported,
                               [&] { checkpoint.open([](auto& o) { o.mode = NumericMode::native; }); }),
                    {"layer 0", "native", "16"}));
}

TEST(KvOptions, TurboOverASlidingLayerNamesThatLayer) {
  TinyCheckpoint checkpoint = with_spoiled_tensors();
  checkpoint.config["head_dim"] = 64;
  checkpoint.config["sliding_window"] = 8;
  checkpoint.config["layer_types"] = {"full_attention", "sliding_attention"};
  EXPECT_TRUE(names(refused(checkpoint, ErrorCode::unsupported, "turbo:8:3"), {"layer 1", "8"}));
}

TEST(KvOptions, ConfigIsReadFromTheFolderBeforeTheTensors) {
  TinyCheckpoint checkpoint = with_spoiled_tensors();
  EXPECT_TRUE(names(refused(checkpoint, ErrorCode::not_found, "config"), {"kv_config.json"}));
  checkpoint.write("kv_config.json", R"([{"layer_idx": 2, "bits": 4, "group_size": 32}])");
  EXPECT_TRUE(names(refused(checkpoint, ErrorCode::corrupt_file, "config"), {"kv_config.json", "layer 2", "2 layers"}));
  checkpoint.write("kv_config.json", R"([{"layer_idx": 1, "bits": 4, "group_size": 64}])");
  EXPECT_TRUE(names(refused(checkpoint, ErrorCode::unsupported, "config"), {"layer 1", "affine:4:64"}));
}

TEST(KvOptions, ASingleFileHasNoConfig) {
  const TinyCheckpoint folder;
  checkpoint::GgufBytes gguf;
  gguf.string("general.architecture", "llama").u32("llama.block_count", 2).u32("llama.embedding_length", 8);
  gguf.u32("llama.feed_forward_length", 16).u32("llama.attention.head_count", 2).u32("llama.context_length", 64);
  gguf.f32("llama.attention.layer_norm_rms_epsilon", 1e-5f).u32("llama.vocab_size", 12);
  folder.write("m.gguf", gguf.bytes());
  const std::string message = message_of(ErrorCode::unsupported, [&] {
    folder.open([&](ModelOptions& options) {
      options.path = folder.folder / "m.gguf";
      options.kv = cache::parse_kv_policy("config");
    });
  });
  EXPECT_TRUE(names(message, {"m.gguf", "kv_config.json", "folder"}));
}

TEST(KvOptions, AnOpenedModelHasTheLayersOfItsConfig) {
  TinyCheckpoint checkpoint;
  checkpoint.set_head_dim(32);
  checkpoint.write("kv_config.json", R"([{"layer_idx": 1, "bits": 4, "group_size": 32}])");
  const auto model = checkpoint.open([](ModelOptions& options) {
    options.kv = cache::parse_kv_policy("config");
    options.kv.start = 5;
  });
  const cache::KvPolicy& kv = model->store->policy();
  EXPECT_EQ(kv, model->options.kv);
  EXPECT_EQ(kv.start, 5);
  EXPECT_EQ(kv.codec_of(0).kind, cache::CodecKind::dense);
  EXPECT_EQ(kv.codec_of(1), (cache::Codec{.kind = cache::CodecKind::affine, .bits = 4, .group = 32}));

  // A second store over the same graph. A token leaves 2 planes of 2 heads of 32 elements: dense in f32, 256 bytes a
  // plane-head pair; in 4 bits with two f32 for each group of 32, 16 + 8 bytes.
  const auto dense = model->make_store({});
  EXPECT_EQ(dense->bytes_per_token(), 2u * 2 * 2 * 32 * 4);
  EXPECT_EQ(model->store->bytes_per_token(), 2u * 2 * 32 * 4 + 2 * 2 * (16 + 8));
  EXPECT_TRUE(names(message_of(ErrorCode::unsupported,
                               [&] { model->make_store(cache::parse_kv_policy("turbo:8:4")); }),
                    {"layer 0", "turbo:8:4"}));
}

}  // namespace
}  // namespace godwit::models
