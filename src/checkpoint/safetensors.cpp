#include "checkpoint/safetensors.h"

#include <cstring>
#include <optional>
#include <string>

#include "base/checked.h"
#include "checkpoint/strict_json.h"

namespace godwit::checkpoint {
namespace {

constexpr std::uint64_t kMaxHeaderBytes = 256ull << 20;
constexpr std::size_t kMaxDimensions = 16;
constexpr std::string_view kOrigin = "safetensors";

std::optional<TensorFormat> format_of(std::string_view dtype) {
  static constexpr TensorFormat kPlain[] = {
      TensorFormat::boolean, TensorFormat::u8,        TensorFormat::u16,     TensorFormat::u32,
      TensorFormat::u64,     TensorFormat::i8,        TensorFormat::i16,     TensorFormat::i32,
      TensorFormat::i64,     TensorFormat::f16,       TensorFormat::bf16,    TensorFormat::f32,
      TensorFormat::f64,     TensorFormat::complex64, TensorFormat::f8_e4m3, TensorFormat::f8_e5m2,
      TensorFormat::f8_e8m0};
  for (const TensorFormat format : kPlain)
    if (info(format).name == dtype) return format;
  return std::nullopt;
}

struct Header {
  std::string_view json;
  std::uint64_t data_start;
};

Header split_header(const FileMap& file) {
  const auto bytes = file.bytes();
  const std::string path = file.path().string();
  std::uint64_t length = 0;
  if (bytes.size() < sizeof length)
    fail(ErrorCode::corrupt_file, kOrigin, "{}: {} bytes are too few for a header", path, bytes.size());
  std::memcpy(&length, bytes.data(), sizeof length);  // every machine we build for is little-endian
  if (length > kMaxHeaderBytes || length > bytes.size() - sizeof length)
    fail(ErrorCode::corrupt_file, kOrigin,
         "{}: a header of {} bytes does not fit the file of {} bytes (limit {})", path, length, bytes.size(),
         kMaxHeaderBytes);
  return {{reinterpret_cast<const char*>(bytes.data()) + sizeof length, static_cast<std::size_t>(length)},
          sizeof length + length};
}

std::uint64_t unsigned_value(const HeaderJson& value, std::string_view what) {
  if (!value.is_number_unsigned())
    fail(ErrorCode::corrupt_file, kOrigin, "{} is {} where a size belongs", what, header_text(value));
  return value.get<std::uint64_t>();
}

std::vector<std::uint64_t> unsigned_list(const HeaderJson& object, const char* key, const std::string& what) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array() || found->size() > kMaxDimensions)
    fail(ErrorCode::corrupt_file, kOrigin, "{}: {} is not a list of at most {} sizes", what, key,
         kMaxDimensions);
  std::vector<std::uint64_t> values;
  for (const HeaderJson& value : *found) values.push_back(unsigned_value(value, what + ": " + key));
  return values;
}

TensorFormat dtype_of(const HeaderJson& object, const std::string& what) {
  const auto found = object.find("dtype");
  if (found == object.end() || !found->is_string())
    fail(ErrorCode::corrupt_file, kOrigin, "{}: dtype is missing or not a string", what);
  const auto& name = found->get_ref<const std::string&>();
  if (const auto format = format_of(name)) return *format;
  fail(ErrorCode::unsupported, kOrigin, "{}: dtype {} is unknown", what, name);
}

TensorEntry read_entry(const std::string& name, const HeaderJson& object,
                       const std::shared_ptr<const FileMap>& file, std::uint64_t data_start) {
  const std::string what = file->path().string() + ": tensor " + name;
  if (!object.is_object()) fail(ErrorCode::corrupt_file, kOrigin, "{}: its entry is not an object", what);
  TensorEntry entry;
  entry.name = name;
  entry.format = dtype_of(object, what);
  const auto shape = unsigned_list(object, "shape", what);
  for (const std::uint64_t size : shape) entry.shape.push_back(checked_cast<int>(size, what + ": dimension"));
  const auto offsets = unsigned_list(object, "data_offsets", what);
  if (offsets.size() != 2 || offsets[0] > offsets[1])
    fail(ErrorCode::corrupt_file, kOrigin, "{}: data_offsets are not a rising pair", what);
  const std::uint64_t size = tensor_bytes(entry.format, shape, what);
  if (offsets[1] - offsets[0] != size)
    fail(ErrorCode::corrupt_file, kOrigin, "{}: data_offsets span {} bytes but {} {} needs {}", what,
         offsets[1] - offsets[0], info(entry.format).name, shape_text(entry.shape), size);
  const std::uint64_t start = checked_add(data_start, offsets[0], what);
  place(entry, file, start, size);
  return entry;
}

}  // namespace

std::vector<TensorEntry> read_safetensors(std::shared_ptr<const FileMap> file) {
  const Header header = split_header(*file);
  const HeaderJson json = parse_header_json(header.json, file->path().string());
  if (!json.is_object())
    fail(ErrorCode::corrupt_file, kOrigin, "{}: the header is not an object", file->path().string());
  std::vector<TensorEntry> entries;
  for (const auto& [name, object] : json.items())
    if (name != "__metadata__") entries.push_back(read_entry(name, object, file, header.data_start));
  check_no_overlap(entries);
  return entries;
}

}  // namespace godwit::checkpoint
