#include "checkpoint/tensor_entry.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/file_pages.h"

namespace godwit::checkpoint {
namespace {

mx::Dtype dtype_of(TensorFormat format) {
  switch (format) {
    case TensorFormat::boolean:
      return mx::bool_;
    case TensorFormat::u16:
      return mx::uint16;
    case TensorFormat::u32:
      return mx::uint32;
    case TensorFormat::u64:
      return mx::uint64;
    case TensorFormat::i8:
      return mx::int8;
    case TensorFormat::i16:
      return mx::int16;
    case TensorFormat::i32:
      return mx::int32;
    case TensorFormat::i64:
      return mx::int64;
    case TensorFormat::f16:
      return mx::float16;
    case TensorFormat::bf16:
      return mx::bfloat16;
    case TensorFormat::f32:
      return mx::float32;
    case TensorFormat::f64:
      return mx::float64;
    case TensorFormat::complex64:
      return mx::complex64;
    default:
      return mx::uint8;  // u8, the F8 formats and the bytes of blocks
  }
}

// MLX takes the mapped pages themselves where its allocator can; the map then outlives the array. Where it cannot,
// the tensor is copied piece by piece, so that no more than a piece of it is held twice.
mx::array wrap(const TensorEntry& entry, mx::Shape shape, mx::Dtype dtype) {
  if (entry.size == 0) return mx::array(static_cast<const float*>(nullptr), std::move(shape), dtype);
  const std::span<const std::byte> bytes = entry.bytes();
  // MLX takes a mutable pointer but never writes to data it does not own; the pages are mapped read-only.
  mx::allocator::Buffer shared = mx::allocator::make_buffer(const_cast<std::byte*>(bytes.data()), bytes.size());
  if (shared.ptr()) {
    const auto release = [file = entry.file](mx::allocator::Buffer buffer) { mx::allocator::release(buffer); };
    return mx::array(mx::allocator::Data(shared, release), std::move(shape), dtype);
  }
  mx::array copy(mx::allocator::malloc(bytes.size()), std::move(shape), dtype);
  auto* to = copy.data<std::byte>();
  read_once(bytes, 1, [&](std::span<const std::byte> piece) { to = std::ranges::copy(piece, to).out; });
  return copy;
}

}  // namespace

std::string shape_text(const mx::Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

std::string describe(const TensorEntry& entry) {
  return fmt::format("{}: tensor {}", entry.file ? entry.file->path().string() : "?", entry.name);
}

std::uint64_t tensor_bytes(TensorFormat format, std::span<const std::uint64_t> shape, std::string_view what) {
  const FormatInfo& of = info(format);
  const auto block = static_cast<std::uint64_t>(of.block_elements);
  if (block > 1 && (shape.empty() || shape.back() % block != 0))
    fail(ErrorCode::corrupt_file, "tensor", "{}: rows of {} elements are not whole {} blocks of {}", what,
         shape.empty() ? 1 : shape.back(), of.name, block);
  std::uint64_t elements = 1;
  for (const std::uint64_t size : shape) elements = checked_mul(elements, size, what);
  return checked_mul(elements / block, static_cast<std::uint64_t>(of.block_bytes), what);
}

void place(TensorEntry& entry, std::shared_ptr<const FileMap> file, std::uint64_t offset,
           std::uint64_t size) {
  const std::uint64_t held = file->bytes().size();
  if (offset > held || size > held - offset)
    fail(ErrorCode::corrupt_file, "tensor", "{}: tensor {}: bytes {}..{}+{} lie outside the file of {} bytes",
         file->path().string(), entry.name, offset, offset, size, held);
  entry.file = std::move(file);
  entry.offset = static_cast<std::size_t>(offset);
  entry.size = static_cast<std::size_t>(size);
}

void check_no_overlap(std::span<const TensorEntry> entries) {
  std::vector<const TensorEntry*> order;
  for (const TensorEntry& entry : entries)
    if (entry.size > 0) order.push_back(&entry);
  std::sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->offset < b->offset; });
  for (std::size_t i = 1; i < order.size(); ++i)
    if (order[i]->offset < order[i - 1]->offset + order[i - 1]->size)
      fail(ErrorCode::corrupt_file, "tensor", "{} overlaps {}", describe(*order[i]), order[i - 1]->name);
}

mx::array to_array(const TensorEntry& entry) { return wrap(entry, entry.shape, dtype_of(entry.format)); }

mx::array to_byte_array(const TensorEntry& entry) {
  const FormatInfo& of = info(entry.format);
  mx::Shape shape = entry.shape;
  shape.back() =
      checked_cast<int>(std::int64_t{shape.back()} / of.block_elements * of.block_bytes, describe(entry));
  return wrap(entry, std::move(shape), mx::uint8);
}

}  // namespace godwit::checkpoint
