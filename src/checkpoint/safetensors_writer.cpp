#include "checkpoint/safetensors_writer.h"

#include <array>
#include <fstream>

#include "base/error.h"
#include "base/json.h"

namespace godwit::checkpoint {
namespace {

std::string header_of(std::span<const TensorToWrite> tensors) {
  Json header = Json::object();
  std::uint64_t offset = 0;
  for (const TensorToWrite& tensor : tensors) {
    const FormatInfo& format = info(tensor.format);
    GODWIT_CHECK(format.block_elements == 1, "{} is a block format", format.name);
    std::uint64_t wanted = static_cast<std::uint64_t>(format.block_bytes);
    for (const std::uint64_t size : tensor.shape) wanted *= size;
    GODWIT_CHECK(wanted == tensor.bytes.size(), "tensor {}: {} bytes, {} wanted", tensor.name,
                 tensor.bytes.size(), wanted);
    header[tensor.name] = {
        {"dtype", format.name}, {"shape", tensor.shape}, {"data_offsets", {offset, offset + wanted}}};
    offset += wanted;
  }
  std::string text = dump_json(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, std::span<const TensorToWrite> tensors) {
  // The new file takes the place of an old one; a device or a pipe must not vanish that way.
  if (std::error_code absent;
      std::filesystem::exists(path, absent) && !std::filesystem::is_regular_file(path, absent))
    fail(ErrorCode::io, "safetensors", "{}: cannot be written: it is no regular file", path.string());
  const std::string header = header_of(tensors);
  std::array<char, 8> length;
  for (std::size_t i = 0; i < length.size(); ++i)
    length[i] = static_cast<char>(header.size() >> (8 * i) & 0xff);

  std::filesystem::path fresh = path;
  fresh += ".new";
  std::ofstream file(fresh, std::ios::binary | std::ios::trunc);
  file.write(length.data(), length.size());
  file.write(header.data(), static_cast<std::streamsize>(header.size()));
  for (const TensorToWrite& tensor : tensors)
    file.write(reinterpret_cast<const char*>(tensor.bytes.data()),
               static_cast<std::streamsize>(tensor.bytes.size()));
  file.close();
  std::error_code error;
  if (file) std::filesystem::rename(fresh, path, error);
  if (file && !error) return;
  std::error_code ignored;
  std::filesystem::remove(fresh, ignored);
  fail(ErrorCode::io, "safetensors", "{}: cannot be written", path.string());
}

}  // namespace godwit::checkpoint
