// Damaged and crafted GGUF files. The well-formed side is tests/formats.
#include "checkpoint/gguf.h"

#include "base/mx_ops.h"
#include "checkpoint/repack.h"
#include "checkpoint/test_files.h"

namespace godwit::checkpoint {
namespace {

// One Q4_1 tensor "t.weight" of two rows, scale 0.5 and minimum -3: 192 bytes, data at 128.
const std::string kTwoRows = from_hex(
    "474755460300000001000000000000000100000000000000140000000000000067656e6572616c2e617263686974656374757265"
    "0800000005000000"
    "000000006c6c616d610800000000000000742e776569676874020000002000000000000000020000000000000003000000000000"
    "0000000000000000"
    "0000000000000000003800c2f0e1d2c3b4a5968778695a4b3c2d1e0f003800c2f0e1d2c3b4a5968778695a4b3c2d1e0f00000000"
    "00000000000000000"
    "00000000000000000000000");

GgufFile read(const std::string& name, const std::string& bytes) {
  const auto path = write_file(fresh_folder("gguf") / name, bytes);
  return read_gguf(std::make_shared<const FileMap>(path));
}

template <typename T>
std::string patched(std::size_t at, T value, std::string bytes = kTwoRows) {
  return bytes.replace(at, sizeof value, le(value));
}

// Where the fields of kTwoRows stand.
constexpr std::size_t kVersion = 4, kTensorCount = 8, kPairCount = 16, kNameLength = 69;
constexpr std::size_t kDimensions = kNameLength + 8 + 8, kFirstDimension = kDimensions + 4;
constexpr std::size_t kType = kFirstDimension + 16, kOffset = kType + 4;

TEST(Gguf, a_q4_1_block_has_a_scale_and_a_minimum) {
  ASSERT_EQ(kTwoRows.size(), 192u);
  const GgufFile file = read("q4_1.gguf", kTwoRows);
  ASSERT_EQ(file.tensors.size(), 1u);
  mx::array values = load_blocks(file.tensors[0]).dequantize(mx::float32);
  values.eval();
  ASSERT_EQ(values.shape(), mx::Shape({2, 32}));
  for (int row = 0; row < 2; ++row)
    for (int i = 0; i < 32; ++i)
      EXPECT_EQ(values.data<float>()[32 * row + i], -3.0f + 0.5f * static_cast<float>(i < 16 ? i : 31 - i))
          << i;
}

TEST(Gguf, padding_after_the_last_tensor_may_be_missing_but_data_may_not) {
  EXPECT_EQ(read("whole.gguf", kTwoRows.substr(0, 168)).tensors.size(), 1u);
  expect_error(ErrorCode::corrupt_file, {"cut.gguf", "t.weight", "167"},
               [] { read("cut.gguf", kTwoRows.substr(0, 167)); });
}

TEST(Gguf, an_offset_that_wraps_leaves_the_file_or_is_unaligned_is_refused) {
  // The second one wraps only when the size is added, too.
  for (const std::uint64_t offset :
       {0 - std::uint64_t{32}, 0 - std::uint64_t{160}, std::uint64_t{1} << 63, std::uint64_t{1} << 20})
    expect_error(ErrorCode::corrupt_file, {"t.weight"},
                 [&] { read("offset.gguf", patched(kOffset, offset)); });
  expect_error(ErrorCode::corrupt_file, {"t.weight", "33", "multiple of 32"},
               [] { read("offset.gguf", patched(kOffset, std::uint64_t{33})); });
}

TEST(Gguf, counts_that_the_file_cannot_hold_are_refused_before_memory_is_taken) {
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 40;
  expect_error(ErrorCode::corrupt_file, {"counts.gguf", "number of tensors", "1099511627776"},
               [] { read("counts.gguf", patched(kTensorCount, kHuge)); });
  expect_error(ErrorCode::corrupt_file, {"number of metadata keys", "1099511627776"},
               [] { read("counts.gguf", patched(kPairCount, kHuge)); });
  expect_error(ErrorCode::corrupt_file, {},
               [] { read("counts.gguf", patched(kPairCount, std::uint64_t{2})); });
  expect_error(ErrorCode::corrupt_file, {"tensor name", "1099511627776"},
               [] { read("counts.gguf", patched(kNameLength, kHuge)); });
}

TEST(Gguf, dimensions_are_few_and_fit) {
  expect_error(ErrorCode::corrupt_file, {"t.weight", "9 dimensions"},
               [] { read("dims.gguf", patched(kDimensions, std::uint32_t{9})); });
  expect_error(ErrorCode::corrupt_file, {"t.weight"},
               [] { read("dims.gguf", patched(kFirstDimension, std::uint64_t{1} << 62)); });
  expect_error(ErrorCode::corrupt_file, {"t.weight", "33", "Q4_1"},
               [] { read("dims.gguf", patched(kFirstDimension, std::uint64_t{33})); });
}

TEST(Gguf, an_element_type_that_cannot_be_read_is_named_with_its_tensor) {
  expect_error(ErrorCode::unsupported, {"type.gguf", "t.weight", "99", "unknown"},
               [] { read("type.gguf", patched(kType, std::uint32_t{99})); });
  expect_error(ErrorCode::unsupported, {"t.weight", "36", "removed"},
               [] { read("type.gguf", patched(kType, std::uint32_t{36})); });
  expect_error(ErrorCode::unsupported, {"t.weight", "17", "IQ2_XS"},
               [] { read("type.gguf", patched(kType, std::uint32_t{17})); });
}

TEST(Gguf, other_versions_byte_orders_and_files_are_refused) {
  expect_error(ErrorCode::unsupported, {"version 1"},
               [] { read("v.gguf", patched(kVersion, std::uint32_t{1})); });
  expect_error(ErrorCode::unsupported, {"big-endian"},
               [] { read("v.gguf", patched(kVersion, std::uint32_t{0x03000000})); });
  expect_error(ErrorCode::corrupt_file, {"m.gguf", "not with GGUF"},
               [] { read("m.gguf", std::string(64, 'x')); });
  expect_error(ErrorCode::corrupt_file, {"e.gguf", "0"}, [] { read("e.gguf", ""); });
  expect_error(ErrorCode::corrupt_file, {"version"}, [] { read("g.gguf", "GGUF"); });
  EXPECT_EQ(read("v2.gguf", patched(kVersion, std::uint32_t{2})).version, 2u);
}

TEST(Gguf, every_cut_of_a_file_is_an_error_and_never_a_crash) {
  for (std::size_t size = 0; size < 168; ++size)
    EXPECT_THROW(read("cut.gguf", kTwoRows.substr(0, size)), Error) << size;
}

TEST(Gguf, names_and_keys_stand_once_and_tensors_do_not_share_bytes) {
  expect_error(ErrorCode::corrupt_file, {"a.b", "twice"},
               [] { read("k.gguf", GgufBytes().u32("a.b", 1).u32("a.b", 2).bytes()); });
  const std::string four(16, '\0');
  expect_error(ErrorCode::corrupt_file, {"w", "twice"}, [&] {
    read("t.gguf", GgufBytes().tensor("w", {4}, 0, four).tensor("w", {4}, 0, four).bytes());
  });
  std::string overlap =
      GgufBytes().tensor("w", {16}, 0, std::string(64, '\0')).tensor("x", {4}, 0, four).bytes();
  const std::size_t second_offset = overlap.find(GgufBytes::text("x")) + 9 + 4 + 8 + 4;
  overlap.replace(second_offset, 8, le(std::uint64_t{32}));
  expect_error(ErrorCode::corrupt_file, {"x overlaps w"}, [&] { read("o.gguf", overlap); });
}

TEST(Gguf, nested_arrays_unknown_value_types_and_bad_alignment_are_refused) {
  expect_error(ErrorCode::unsupported, {"a.b", "arrays in an array"}, [] {
    read("n.gguf", GgufBytes().pair("a.b", 9, le(std::uint32_t{9}) + le(std::uint64_t{1})).bytes());
  });
  expect_error(ErrorCode::corrupt_file, {"a.b", "77"},
               [] { read("n.gguf", GgufBytes().pair("a.b", 77, "").bytes()); });
  for (const std::uint32_t alignment : {0u, 3u, 1u << 30})
    expect_error(ErrorCode::corrupt_file, {"general.alignment", std::to_string(alignment)},
                 [&] { read("n.gguf", GgufBytes().u32("general.alignment", alignment).bytes()); });
}

TEST(Gguf, a_huge_array_count_is_refused) {
  const std::string huge = le(std::uint32_t{4}) + le(std::uint64_t{1} << 61);
  expect_error(ErrorCode::corrupt_file, {"a.b", "2305843009213693952"},
               [&] { read("n.gguf", GgufBytes().pair("a.b", 9, huge).bytes()); });
}

}  // namespace
}  // namespace godwit::checkpoint
