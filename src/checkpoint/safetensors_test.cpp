// Damaged and crafted safetensors files, and which files of a folder are read. Written ones: tests/formats.
#include "checkpoint/safetensors.h"

#include "base/mx_ops.h"
#include "checkpoint/test_files.h"

namespace godwit::checkpoint {
namespace {

std::vector<TensorEntry> read_bytes(const std::string& bytes) {
  return read_safetensors(
      std::make_shared<const FileMap>(write_file(fresh_folder("safetensors") / "f.safetensors", bytes)));
}
std::vector<TensorEntry> read(const std::string& header, std::size_t data = 16) {
  return read_bytes(safetensors_bytes(header, std::string(data, '\1')));
}
std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":{}}})", name, dtype, shape, offsets);
}

TEST(Safetensors, a_header_that_does_not_fit_is_refused) {
  expect_error(ErrorCode::corrupt_file, {"f.safetensors", "0 bytes"}, [] { read_bytes(""); });
  expect_error(ErrorCode::corrupt_file, {"7 bytes"}, [] { read_bytes("1234567"); });
  for (const std::uint64_t length : {std::uint64_t{3}, std::uint64_t{1} << 40, ~std::uint64_t{0}})
    expect_error(ErrorCode::corrupt_file, {"f.safetensors", std::to_string(length)},
                 [&] { read_bytes(le(length) + "{}"); });
}

TEST(Safetensors, a_header_that_is_no_object_of_objects_is_refused) {
  expect_error(ErrorCode::corrupt_file, {"f.safetensors"}, [] { read("{"); });
  expect_error(ErrorCode::corrupt_file, {"not an object"}, [] { read("[]"); });
  expect_error(ErrorCode::corrupt_file, {"tensor a", "not an object"}, [] { read(R"({"a":1})"); });
  expect_error(ErrorCode::corrupt_file, {"nesting"},
               [] { read(R"({"a":)" + std::string(100000, '[') + std::string(100000, ']') + "}"); });
  expect_error(ErrorCode::corrupt_file, {"a", "twice"}, [] {
    read("{" + entry("a", "F32", "[1]", "[0,4]") + "," + entry("a", "F32", "[1]", "[4,8]") + "}");
  });
}

TEST(Safetensors, offsets_must_match_the_shape_and_lie_inside) {
  const auto bad = [](const std::string& shape, const std::string& offsets, const std::string& says) {
    expect_error(ErrorCode::corrupt_file, {"f.safetensors", "tensor a", says},
                 [&] { read("{" + entry("a", "F32", shape, offsets) + "}"); });
  };
  bad("[4]", "[8,24]", "outside");
  bad("[4]", "[16,0]", "rising");
  bad("[4]", "[0,12]", "needs 16");
  bad("[4]", "[0]", "pair");
  bad("[4]", "[-16,0]", "-16");
  bad("[4]", "[0.0,16.0]", "0.0");
  bad("[-4]", "[0,16]", "-4");
  bad("[3000000000]", "[0,12000000000]", "3000000000");
  bad("[65536,65536,65536,65536]", "[0,0]", "overflows");
  bad("[18446744073709551615]", "[0,16]", "18446744073709551615");
  bad("4", "[0,16]", "shape");
  bad("[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,4]", "at most 16");
}

TEST(Safetensors, tensors_may_not_share_bytes) {
  expect_error(ErrorCode::corrupt_file, {"b overlaps a"}, [] {
    read("{" + entry("a", "F32", "[2]", "[0,8]") + "," + entry("b", "F32", "[2]", "[4,12]") + "}");
  });
}

TEST(Safetensors, an_unknown_dtype_is_named) {
  expect_error(ErrorCode::unsupported, {"tensor a", "F7"},
               [] { read("{" + entry("a", "F7", "[1]", "[0,4]") + "}"); });
  expect_error(ErrorCode::corrupt_file, {"tensor a", "dtype"},
               [] { read(R"({"a":{"shape":[1],"data_offsets":[0,4]}})"); });
}

TEST(Safetensors, unaligned_data_empty_tensors_and_f8_are_read) {
  // The header's length makes the data start at an odd byte.
  std::string header = "{" + entry("a", "F32", "[1]", "[1,5]") + "," + entry("e", "F32", "[0,3]", "[0,0]") +
                       "," + entry("f", "F8_E4M3", "[2]", "[5,7]") + R"(,"__metadata__":{"x":"y"}})";
  if (header.size() % 2 == 0) header += " ";
  const std::string data = std::string(1, '\0') + le(1.5f) + "\x38\x40";
  const auto entries = read_bytes(safetensors_bytes(header, data));
  ASSERT_EQ(entries.size(), 3u);
  for (const TensorEntry& found : entries) {
    mx::array values = to_array(found);
    values.eval();
    if (found.name == "a") {
      EXPECT_EQ(values.item<float>(), 1.5f);
    } else if (found.name == "e") {
      EXPECT_EQ(values.size(), 0u);
    } else {
      EXPECT_EQ(values.dtype(), mx::uint8);
      EXPECT_EQ(info(found.format).name, "F8_E4M3");
    }
  }
}

std::string one(const std::string& name) {
  return safetensors_bytes("{" + entry(name, "F32", "[1]", "[0,4]") + "}", le(1.0f));
}

TEST(SafetensorsFolder, shards_come_from_the_index_or_from_the_names) {
  const auto folder = fresh_folder("shards");
  write_file(folder / "model-00001-of-00002.safetensors", one("a"));
  write_file(folder / "model-00002-of-00002.safetensors", one("b"));
  write_file(folder / "vision.safetensors", one("v"));
  EXPECT_EQ(read_safetensors_folder(folder).size(), 2u);
  write_file(folder / "model.safetensors.index.json",
             R"({"weight_map":{"a":"model-00001-of-00002.safetensors"}})");
  EXPECT_EQ(read_safetensors_folder(folder).size(), 1u);
}

TEST(SafetensorsFolder, a_missing_shard_is_named) {
  const auto folder = fresh_folder("missing");
  write_file(folder / "model-00001-of-00002.safetensors", one("a"));
  expect_error(ErrorCode::not_found, {"model-00001-of-00002.safetensors", "1 of 00002"},
               [&] { read_safetensors_folder(folder); });
  write_file(folder / "model.safetensors.index.json",
             R"({"weight_map":{"a":"model-00002-of-00002.safetensors"}})");
  expect_error(ErrorCode::not_found, {"model-00002-of-00002.safetensors", "missing"},
               [&] { read_safetensors_folder(folder); });
  expect_error(ErrorCode::not_found, {"no model*.safetensors"},
               [] { read_safetensors_folder(fresh_folder("none")); });
}

TEST(SafetensorsFolder, an_index_cannot_reach_out_of_its_folder_or_be_anything_else) {
  const auto folder = fresh_folder("index");
  const auto bad = [&](const std::string& index, const std::string& says) {
    write_file(folder / "model.safetensors.index.json", index);
    expect_error(ErrorCode::corrupt_file, {"model.safetensors.index.json", says},
                 [&] { read_safetensors_folder(folder); });
  };
  bad(R"({"weight_map":{"a":"../x.safetensors"}})", "../x.safetensors");
  bad(R"({"weight_map":{"a":"/etc/passwd"}})", "/etc/passwd");
  bad(R"({"weight_map":{"a":7}})", "tensor a");
  bad(R"({"weight_map":[]})", "weight_map");
  bad("[]", "weight_map");
  bad("{", "index.json");
}

TEST(SafetensorsFolder, a_name_in_two_shards_is_refused) {
  const auto folder = fresh_folder("twice");
  write_file(folder / "model-1.safetensors", one("a"));
  write_file(folder / "model-2.safetensors", one("a"));
  expect_error(ErrorCode::corrupt_file, {"tensor a", "model-1.safetensors", "model-2.safetensors"},
               [&] { read_safetensors_folder(folder); });
}

}  // namespace
}  // namespace godwit::checkpoint
