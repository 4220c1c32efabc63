// Files that the gguf package and mlx wrote, read by us.
#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "base/mx_ops.h"
#include "checkpoint/gguf.h"
#include "checkpoint/safetensors.h"

namespace godwit::checkpoint {
namespace {

const std::filesystem::path kFolder = GODWIT_FORMATS_FOLDER;

std::map<std::string, TensorEntry> by_name(std::vector<TensorEntry> entries) {
  std::map<std::string, TensorEntry> map;
  for (TensorEntry& entry : entries) map.emplace(entry.name, std::move(entry));
  return map;
}

bool is_ramp(const TensorEntry& entry) {
  const mx::array want = mx::reshape(mx::arange(12), {3, 4});
  return entry.shape == want.shape() &&
         mx::array_equal(to_array(entry), mx::astype(want, to_array(entry).dtype())).item<bool>();
}

TEST(WrittenFiles, every_dtype_of_mlx_comes_out_of_safetensors) {
  auto map = by_name(read_safetensors(std::make_shared<const FileMap>(kFolder / "written.safetensors")));
  const std::map<std::string, mx::Dtype> dtypes = {
      {"uint8", mx::uint8},       {"uint16", mx::uint16},   {"uint32", mx::uint32},
      {"uint64", mx::uint64},     {"int8", mx::int8},       {"int16", mx::int16},
      {"int32", mx::int32},       {"int64", mx::int64},     {"float16", mx::float16},
      {"bfloat16", mx::bfloat16}, {"float32", mx::float32}, {"complex64", mx::complex64}};
  EXPECT_EQ(map.size(), dtypes.size() + 3);
  for (const auto& [name, dtype] : dtypes) {
    SCOPED_TRACE(name);
    EXPECT_EQ(to_array(map.at(name)).dtype(), dtype);
    EXPECT_TRUE(is_ramp(map.at(name)));
  }
  EXPECT_EQ(mx::sum(mx::astype(to_array(map.at("bool")), mx::int32)).item<int>(), 6);
  EXPECT_EQ(to_array(map.at("scalar")).item<float>(), 7.0f);
  EXPECT_EQ(to_array(map.at("empty")).shape(), mx::Shape({0, 4}));
}

TEST(WrittenFiles, arrays_outlive_the_reader_and_its_map) {
  std::optional<mx::array> kept;
  {
    auto map = by_name(read_safetensors(std::make_shared<const FileMap>(kFolder / "written.safetensors")));
    kept = to_array(map.at("int32"));
  }
  EXPECT_EQ(mx::sum(*kept).item<int>(), 66);
}

TEST(WrittenFiles, every_metadata_type_and_plain_tensor_comes_out_of_gguf) {
  const GgufFile file = read_gguf(std::make_shared<const FileMap>(kFolder / "written.gguf"));
  const GgufMetadata& meta = file.metadata;
  EXPECT_EQ(meta.string("general.architecture"), "llama");
  EXPECT_EQ(meta.integer("general.alignment"), 64);
  EXPECT_EQ(meta.integer("t.u8"), 255);
  EXPECT_EQ(meta.integer("t.u16"), 65535);
  EXPECT_EQ(meta.integer("t.u32"), 4294967295);
  EXPECT_EQ(meta.integer("t.u64"), INT64_MAX);
  EXPECT_EQ(meta.integer("t.i8"), -128);
  EXPECT_EQ(meta.integer("t.i16"), -32768);
  EXPECT_EQ(meta.integer("t.i32"), -2147483648ll);
  EXPECT_EQ(meta.integer("t.i64"), INT64_MIN);
  EXPECT_EQ(meta.number("t.f32"), 0.5);
  EXPECT_EQ(meta.number("t.f64"), 1e300);
  EXPECT_EQ(meta.boolean("t.bool"), true);
  EXPECT_EQ(meta.string("t.string"), "gruß");
  EXPECT_EQ(meta.integers("t.ints"), (std::vector<std::int64_t>{1, -2, 3}));
  EXPECT_EQ(meta.numbers("t.floats"), (std::vector<double>{0.25, -0.5}));
  EXPECT_EQ(meta.integers("t.bools"), (std::vector<std::int64_t>{1, 0}));
  const StringList* const strings = meta.strings("t.strings");
  ASSERT_NE(strings, nullptr);
  EXPECT_EQ(*strings, (StringList{"a", "", "ü"}));
  EXPECT_FALSE(meta.integer("t.none").has_value());
  EXPECT_THROW(meta.integer("t.string"), Error);
  EXPECT_EQ(file.tensors.size(), 8u);
  for (const TensorEntry& entry : file.tensors) {
    SCOPED_TRACE(entry.name);
    EXPECT_EQ(entry.offset % 64, 0u);
    EXPECT_TRUE(is_ramp(entry));
  }
}

TEST(WrittenFiles, a_split_model_opens_from_any_of_its_parts) {
  for (const int part : {1, 2, 3}) {
    const GgufFile file = open_gguf(kFolder / fmt::format("split-0000{}-of-00003.gguf", part));
    ASSERT_EQ(file.tensors.size(), 3u);
    for (int i = 0; i < 3; ++i) {
      const TensorEntry& entry = file.tensors[static_cast<std::size_t>(i)];
      EXPECT_EQ(entry.name, fmt::format("part{}", i));
      EXPECT_EQ(mx::sum(to_array(entry)).item<float>(), 4.0f * static_cast<float>(i));
    }
  }
}

TEST(WrittenFiles, a_missing_part_is_named) {
  const auto folder = std::filesystem::temp_directory_path() / "godwit_split_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  for (const char* const name : {"split-00001-of-00003.gguf", "split-00003-of-00003.gguf"})
    std::filesystem::copy(kFolder / name, folder / name);
  try {
    open_gguf(folder / "split-00003-of-00003.gguf");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::not_found);
    EXPECT_NE(std::string(e.what()).find("split-00002-of-00003.gguf: part 2 of 3 is missing"),
              std::string::npos)
        << e.what();
  }
}

}  // namespace
}  // namespace godwit::checkpoint
