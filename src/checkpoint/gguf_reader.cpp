// Parses one GGUF file.
#include <algorithm>
#include <limits>
#include <set>

#include "base/checked.h"
#include "checkpoint/byte_reader.h"
#include "checkpoint/gguf.h"
#include "checkpoint/gguf_types.h"

namespace godwit::checkpoint {
namespace {

constexpr std::string_view kOrigin = "gguf";
constexpr std::uint32_t kMaxDimensions = 4;
constexpr std::uint64_t kMaxKeyBytes = 65535;
constexpr std::size_t kLeastKeyValue = 8 + 4 + 1;    // empty key, type, one byte
constexpr std::size_t kLeastTensor = 8 + 4 + 4 + 8;  // empty name, no dimension, type, offset
constexpr std::uint64_t kMaxAlignment = 1u << 20;

enum ValueType : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };

std::size_t least_bytes(std::uint32_t type, const ByteReader& in, const std::string& key) {
  constexpr std::size_t kBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 0, 8, 8, 8};
  if (type == array)
    fail(ErrorCode::unsupported, kOrigin, "{}: key {} holds arrays in an array", in.origin(), key);
  if (type > f64)
    fail(ErrorCode::corrupt_file, kOrigin, "{}: key {} has value type {}", in.origin(), key, type);
  return kBytes[type];
}

std::int64_t take_integer(ByteReader& in, std::uint32_t type, const std::string& key) {
  switch (type) {
    case u8:
      return in.take<std::uint8_t>(key);
    case i8:
      return in.take<std::int8_t>(key);
    case u16:
      return in.take<std::uint16_t>(key);
    case i16:
      return in.take<std::int16_t>(key);
    case u32:
      return in.take<std::uint32_t>(key);
    case i32:
      return in.take<std::int32_t>(key);
    case boolean:
      return in.take<std::uint8_t>(key) != 0;
    case u64:
      return checked_cast<std::int64_t>(in.take<std::uint64_t>(key), in.origin() + ": key " + key);
    default:
      return in.take<std::int64_t>(key);
  }
}

double take_number(ByteReader& in, std::uint32_t type, const std::string& key) {
  return type == f32 ? static_cast<double>(in.take<float>(key)) : in.take<double>(key);
}

bool is_float(std::uint32_t type) { return type == f32 || type == f64; }

template <typename T, typename Take>
std::vector<T> take_list(std::size_t count, Take&& take) {
  std::vector<T> list;
  list.reserve(count);
  for (std::size_t i = 0; i < count; ++i) list.push_back(take());
  return list;
}

GgufValue take_array(ByteReader& in, const std::string& key) {
  const auto type = in.take<std::uint32_t>(key);
  const std::size_t count = in.take_count(least_bytes(type, in, key), key);
  if (type == string) {
    StringList list;
    list.reserve(count);
    for (std::size_t i = 0; i < count; ++i) list.push_back(in.take_text(key));
    return list;
  }
  if (is_float(type)) return take_list<double>(count, [&] { return take_number(in, type, key); });
  return take_list<std::int64_t>(count, [&] { return take_integer(in, type, key); });
}

GgufValue take_value(ByteReader& in, std::uint32_t type, const std::string& key) {
  if (type == array) return take_array(in, key);
  least_bytes(type, in, key);  // refuses unknown types
  if (type == string) return in.take_string(key);
  if (is_float(type)) return take_number(in, type, key);
  if (type == boolean) return in.take<std::uint8_t>(key) != 0;
  return take_integer(in, type, key);
}

struct Counts {
  std::uint32_t version;
  std::size_t tensors, pairs;
};

Counts take_head(ByteReader& in) {
  constexpr std::uint32_t kMagic = 0x46554747;  // "GGUF"
  if (const auto magic = in.take<std::uint32_t>("the magic"); magic != kMagic)
    fail(ErrorCode::corrupt_file, kOrigin, "{}: starts with {:#010x} and not with GGUF", in.origin(), magic);
  const auto version = in.take<std::uint32_t>("the version");
  if (version != 0 && (version & 0xffff) == 0)
    fail(ErrorCode::unsupported, kOrigin, "{}: version {:#010x}: the file is big-endian", in.origin(),
         version);
  if (version != 2 && version != 3)
    fail(ErrorCode::unsupported, kOrigin, "{}: version {}, readable are 2 and 3", in.origin(), version);
  const std::size_t tensors = in.take_count(kLeastTensor, "the number of tensors");
  const std::size_t pairs = in.take_count(kLeastKeyValue, "the number of metadata keys");
  return {version, tensors, pairs};
}

GgufMetadata take_metadata(ByteReader& in, std::size_t pairs) {
  std::map<std::string, GgufValue, std::less<>> values;
  for (std::size_t i = 0; i < pairs; ++i) {
    std::string key = in.take_string("a metadata key");
    if (key.empty() || key.size() > kMaxKeyBytes)
      fail(ErrorCode::corrupt_file, kOrigin, "{}: metadata key {} has {} bytes", in.origin(), i, key.size());
    const auto type = in.take<std::uint32_t>(key);
    GgufValue value = take_value(in, type, key);
    const auto [at, is_new] = values.emplace(std::move(key), std::move(value));
    if (!is_new)
      fail(ErrorCode::corrupt_file, kOrigin, "{}: the key {} stands twice", in.origin(), at->first);
  }
  return {std::move(values), in.origin()};
}

// A tensor whose offset still counts from the data start, which is only known behind the table.
struct Listed {
  TensorEntry entry;
  std::uint64_t offset, size;
};

Listed take_tensor(ByteReader& in) {
  Listed listed{};
  listed.entry.name = in.take_string("a tensor name");
  const std::string what = in.origin() + ": tensor " + listed.entry.name;
  const auto dimensions = in.take<std::uint32_t>(what);
  if (dimensions > kMaxDimensions)
    fail(ErrorCode::corrupt_file, kOrigin, "{} has {} dimensions, at most {} exist", what, dimensions,
         kMaxDimensions);
  std::vector<std::uint64_t> shape(dimensions);
  for (auto& size : shape) size = in.take<std::uint64_t>(what);
  std::reverse(shape.begin(), shape.end());  // the file counts from the fastest dimension
  for (const auto size : shape) listed.entry.shape.push_back(checked_cast<int>(size, what + ": dimension"));
  const auto type = in.take<std::uint32_t>(what);
  const auto format = gguf_format(type);
  if (!format)
    fail(ErrorCode::unsupported, kOrigin, "{} has element type {} ({}), which cannot be read", what, type,
         gguf_type_name(type));
  listed.entry.format = *format;
  listed.size = tensor_bytes(*format, shape, what);
  listed.offset = in.take<std::uint64_t>(what);
  return listed;
}

std::uint64_t alignment_of(const GgufMetadata& metadata) {
  const auto value = metadata.integer("general.alignment").value_or(32);
  if (value < 1 || value > static_cast<std::int64_t>(kMaxAlignment) || (value & (value - 1)) != 0)
    fail(ErrorCode::corrupt_file, kOrigin, "{}: general.alignment is {}", metadata.origin(), value);
  return static_cast<std::uint64_t>(value);
}

}  // namespace

GgufFile read_gguf(std::shared_ptr<const FileMap> file) {
  ByteReader in(file->bytes(), file->path().string());
  const Counts counts = take_head(in);
  GgufFile result;
  result.version = counts.version;
  result.metadata = take_metadata(in, counts.pairs);
  const std::uint64_t alignment = alignment_of(result.metadata);
  std::vector<Listed> listed;
  std::set<std::string> names;
  for (std::size_t i = 0; i < counts.tensors; ++i) {
    listed.push_back(take_tensor(in));
    if (!names.insert(listed.back().entry.name).second)
      fail(ErrorCode::corrupt_file, kOrigin, "{}: tensor {} stands twice", in.origin(),
           listed.back().entry.name);
  }
  const std::uint64_t start =
      checked_add<std::uint64_t>(in.position(), alignment - 1, in.origin()) & ~(alignment - 1);
  for (Listed& tensor : listed) {
    const std::string what = in.origin() + ": tensor " + tensor.entry.name;
    if (tensor.offset % alignment != 0)
      fail(ErrorCode::corrupt_file, kOrigin, "{}: offset {} is no multiple of {}", what, tensor.offset,
           alignment);
    place(tensor.entry, file, checked_add(start, tensor.offset, what + ": offset"), tensor.size);
    result.tensors.push_back(std::move(tensor.entry));
  }
  check_no_overlap(result.tensors);
  return result;
}

}  // namespace godwit::checkpoint
