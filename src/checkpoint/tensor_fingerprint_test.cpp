#include "checkpoint/tensor_fingerprint.h"

#include <set>

#include "checkpoint/safetensors.h"
#include "checkpoint/test_files.h"

namespace godwit::checkpoint {
namespace {

// b.weight [[1, 2], [3, 4]], a.bias [1, -2, 3], Z without elements, and a name beyond ASCII.
const std::string kMatrix = le(1.0f) + le(2.0f) + le(3.0f) + le(4.0f);
const std::string kBias = le(std::int16_t{1}) + le(std::int16_t{-2}) + le(std::int16_t{3});

std::vector<TensorEntry> entries_of(const std::string& name, const std::string& header,
                                    const std::string& data) {
  const auto path = write_file(fresh_folder("tensor_fingerprint_" + name) / "model.safetensors",
                               safetensors_bytes(header, data));
  return read_safetensors(std::make_shared<const FileMap>(path));
}

// Python: h = hashlib.sha256(); for each (name, dtype, shape, raw) sorted by name.encode():
//   h.update(json.dumps([name, dtype, shape], separators=(",", ":"), ensure_ascii=False).encode());
//   h.update(raw)
constexpr const char* kDigits = "04d5ece5c638d9975f364fe8af97d51cf128624a4d01336fef75aea6e7b2ba5a";

TEST(TensorFingerprint, fixed_vector_whatever_the_order_in_the_file) {
  const auto one = entries_of("one",
                              R"({"b.weight":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},
        "a.bias":{"dtype":"I16","shape":[3],"data_offsets":[16,22]},
        "Z":{"dtype":"U8","shape":[0],"data_offsets":[22,22]},
        "é":{"dtype":"U8","shape":[2],"data_offsets":[22,24]}})",
                              kMatrix + kBias + "\x01\x02");
  EXPECT_EQ(tensor_fingerprint(one).digits, kDigits);
  const auto other = entries_of("other",
                                R"({"é":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},
        "Z":{"dtype":"U8","shape":[0],"data_offsets":[2,2]},
        "a.bias":{"dtype":"I16","shape":[3],"data_offsets":[2,8]},
        "b.weight":{"dtype":"F32","shape":[2,2],"data_offsets":[8,24]}})",
                                "\x01\x02" + kBias + kMatrix);
  EXPECT_EQ(tensor_fingerprint(other).digits, kDigits);
  // The reader may sort by itself; the fingerprint does not count on it.
  const std::vector<TensorEntry> backwards(one.rbegin(), one.rend());
  EXPECT_EQ(tensor_fingerprint(backwards).digits, kDigits);
}

TEST(TensorFingerprint, name_dtype_shape_and_each_byte_count) {
  const auto of = [](const std::string& name, const std::string& dtype, const std::string& shape,
                     const std::string& data) {
    const std::string header =
        R"({")" + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":[0,4]}})";
    return tensor_fingerprint(entries_of("fields", header, data)).digits;
  };
  const std::set<std::string> seen = {of("a", "U8", "[4]", "abcd"), of("b", "U8", "[4]", "abcd"),
                                      of("a", "I8", "[4]", "abcd"), of("a", "U8", "[2,2]", "abcd"),
                                      of("a", "U8", "[4]", "abce"), of("a", "F32", "[]", "abcd")};
  EXPECT_EQ(seen.size(), 6u);
}

TEST(TensorFingerprint, more_bytes_than_one_piece_are_all_read) {
  std::string data((std::size_t{1} << 24) + 5, 'x');
  const auto of = [](const std::string& bytes) {
    const std::string size = std::to_string(bytes.size());
    return tensor_fingerprint(entries_of(
        "pieces", R"({"a":{"dtype":"U8","shape":[)" + size + R"(],"data_offsets":[0,)" + size + "]}}",
        bytes));
  };
  const Fingerprint whole = of(data);
  // python3 -c 'import hashlib; n = 2**24 + 5; print(hashlib.sha256(b"[\"a\",\"U8\",[%d]]" % n + b"x" *
  // n).hexdigest())'
  EXPECT_EQ(whole.digits, "f0af55b5d26d233db780ae8e850a4413325f9d388415f5ce56975a5947e93bf6");
  data.back() = 'y';
  EXPECT_NE(of(data), whole);
}

TEST(TensorFingerprint, two_tensors_of_one_name_are_refused) {
  auto entries = entries_of("twice", R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "x");
  entries.push_back(entries[0]);
  expect_error(ErrorCode::invalid_argument, {"two tensors", "a"}, [&] { tensor_fingerprint(entries); });
}

}  // namespace
}  // namespace godwit::checkpoint
