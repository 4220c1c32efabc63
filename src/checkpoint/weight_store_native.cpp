// Matrices for `native` mode: packed for our kernels, or refused by name.
#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "base/file_pages.h"
#include "checkpoint/quantize_rows.h"
#include "checkpoint/repack.h"
#include "checkpoint/row_order.h"
#include "checkpoint/weight_store.h"
#include "kernels/quantize_blocks.h"

namespace godwit::checkpoint {
namespace {

constexpr std::string_view kOrigin = "weights";

using Packed = std::vector<std::shared_ptr<const ops::PackedMatrix>>;

// A matrix, or the matrices of a group of experts.
Weight packed_weight(const TensorEntry& entry, Packed packed, bool are_experts) {
  const kernels::PackedShape& shape = packed.front()->shape();
  Weight weight = {.kind = WeightKind::packed,
                   .format = entry.format,
                   .rows = static_cast<int>(shape.rows),
                   .columns = static_cast<int>(shape.columns),
                   .data = mx::array({}, mx::uint8),
                   .scales = std::nullopt,
                   .biases = std::nullopt};
  if (!are_experts) {
    weight.packed = std::move(packed.front());
    return weight;
  }
  weight.experts = static_cast<int>(packed.size());
  weight.packed_experts = std::move(packed);
  return weight;
}

// Where the rows of single matrices lie in a tensor [rows, ..] or [experts, rows, ..] whose size the reader checked.
class MatrixRows {
 public:
  MatrixRows(const mx::Shape& shape, int begin, int end)
      : matrices_(shape.size() == 3 ? shape[0] : 1),
        all_(shape[shape.size() - 2]),
        begin_(begin),
        end_(end == 0 ? all_ : end) {}

  int matrices() const { return matrices_; }
  int rows() const { return end_ - begin_; }
  std::span<const std::byte> of(const TensorEntry& entry, int matrix) const {
    const std::size_t in_all = static_cast<std::size_t>(matrices_) * static_cast<std::size_t>(all_);
    const std::size_t row_bytes = in_all == 0 ? 0 : entry.size / in_all;
    const std::size_t first = static_cast<std::size_t>(matrix) * static_cast<std::size_t>(all_) +
                              static_cast<std::size_t>(begin_);
    return entry.bytes().subspan(first * row_bytes, static_cast<std::size_t>(rows()) * row_bytes);
  }

 private:
  int matrices_, all_, begin_, end_;
};

kernels::ScaleType scale_type(TensorFormat format) {
  switch (format) {
    case TensorFormat::f16:
      return kernels::ScaleType::f16;
    case TensorFormat::bf16:
      return kernels::ScaleType::bf16;
    default:
      return kernels::ScaleType::f32;
  }
}

// The packed matrix is the one copy that is kept: rows [begin, end) of the `rows` that fill `mapped` leave memory as
// soon as they are packed.
void forget_rows(std::span<const std::byte> mapped, int rows, std::int64_t begin, std::int64_t end) {
  const std::size_t row_bytes = mapped.size() / static_cast<std::size_t>(rows);
  forget_pages(mapped.subspan(static_cast<std::size_t>(begin) * row_bytes, static_cast<std::size_t>(end - begin) * row_bytes));
}

// No quantization on load as long as this lives.
class Unquantized {
 public:
  explicit Unquantized(std::optional<kernels::BlockFormat>& setting)
      : setting_(setting), value_(std::exchange(setting, std::nullopt)) {}
  ~Unquantized() { setting_ = value_; }
  Unquantized(const Unquantized&) = delete;
  Unquantized& operator=(const Unquantized&) = delete;

 private:
  std::optional<kernels::BlockFormat>& setting_;
  std::optional<kernels::BlockFormat> value_;
};

}  // namespace

std::vector<int> unpermuted_rows(const TensorEntry& entry, int rows) {
  const int heads = entry.permuted_heads;
  if (rows % heads != 0 || rows / heads % 2 != 0)
    fail(ErrorCode::corrupt_file, kOrigin, "{}: {} rows are not {} heads of an even size", describe(entry),
         rows, heads);
  const int dim = rows / heads;
  std::vector<int> order;
  order.reserve(static_cast<std::size_t>(rows));
  for (int head = 0; head < heads; ++head)
    for (int half = 0; half < 2; ++half)
      for (int pair = 0; pair < dim / 2; ++pair) order.push_back(head * dim + 2 * pair + half);
  return order;
}

// The packed form of blocks or of numbers of 16 bits.
kernels::PackedFormat WeightStore::format_of(const TensorEntry& entry) {
  if (entry.format == TensorFormat::f16 || entry.format == TensorFormat::bf16)
    return kernels::packed_dense(scale_type(entry.format));
  if (!is_block_format(entry.format) || !kernels::has_packed_layout(block_format(entry.format)))
    refuse_native(entry, info(entry.format).name);
  return kernels::packed_format(block_format(entry.format));
}

void WeightStore::refuse_native(const TensorEntry& entry, std::string_view format) {
  fail(ErrorCode::unsupported, kOrigin, "{} is {}, a format that no native kernel multiplies by",
       describe(entry), format);
}

void WeightStore::quantize_with(kernels::BlockFormat format) {
  if (!kernels::can_quantize(format))
    fail(ErrorCode::unsupported, kOrigin, "{}: nothing is quantized to format {}", origin_, static_cast<int>(format));
  quantize_ = format;
}

// What the cache knows of the rows that lie in `bytes`, else what `pack` makes of them. Rows of a larger tensor are told
// apart by where they begin.
template <typename Pack>
std::shared_ptr<const ops::PackedMatrix> WeightStore::packed_once(const TensorEntry& entry, std::span<const std::byte> bytes,
                                                                  const kernels::PackedShape& shape, Pack&& pack) {
  if (!cache_) return pack();
  const std::ptrdiff_t begin = bytes.data() - entry.bytes().data();
  const std::string name = begin == 0 ? entry.name : fmt::format("{}+{}", entry.name, begin);
  if (auto known = cache_->find(name, shape)) return known;
  std::shared_ptr<const ops::PackedMatrix> packed = pack();
  cache_->add(name, packed);
  return packed;
}

std::shared_ptr<const ops::PackedMatrix> WeightStore::packed_rows(const TensorEntry& entry,
                                                                  std::span<const std::byte> bytes, int rows,
                                                                  int columns) {
  const bool is_quantized =
      quantize_ && is_float(entry.format) && columns % kernels::block_size(*quantize_).elements == 0;
  const kernels::PackedFormat format = is_quantized ? kernels::packed_format(*quantize_) : format_of(entry);
  if (columns % format.group != 0)
    refuse_native(entry, fmt::format("{} of {} columns", info(entry.format).name, columns));
  quantized_ += is_quantized ? 1 : 0;
  const kernels::PackedShape layout{format, rows, columns};
  return packed_once(entry, bytes, layout, [&] { return pack_rows(entry, bytes, layout, is_quantized); });
}

// Rows in the order and the format in which they are multiplied, packed.
std::shared_ptr<const ops::PackedMatrix> WeightStore::pack_rows(const TensorEntry& entry, std::span<const std::byte> bytes,
                                                                const kernels::PackedShape& layout, bool is_quantized) {
  const int rows = static_cast<int>(layout.rows), columns = static_cast<int>(layout.columns);
  const std::byte* const mapped = bytes.data();
  std::vector<std::byte> ordered;
  if (entry.permuted_heads != 0) {
    ordered.reserve(bytes.size());
    const std::size_t row_bytes = bytes.size() / static_cast<std::size_t>(rows);
    for (const int row : unpermuted_rows(entry, rows)) {
      const auto source = bytes.subspan(static_cast<std::size_t>(row) * row_bytes, row_bytes);
      ordered.insert(ordered.end(), source.begin(), source.end());
    }
    bytes = ordered;
  }
  std::vector<std::byte> blocks;
  if (is_quantized) {
    blocks = quantized_rows(entry, bytes, rows, columns, *quantize_, *pool_);
    bytes = blocks;
  }
  const bool is_mapped = bytes.data() == mapped;
  const auto forget = [&](std::int64_t begin, std::int64_t end) {
    if (is_mapped) forget_rows(bytes, rows, begin, end);
  };
  return std::make_shared<const ops::PackedMatrix>(layout, bytes, *pool_, forget);
}

Weight WeightStore::native_rows(const TensorEntry& entry, const mx::Shape& shape, RowRange part) {
  check_shape(entry, shape);
  const MatrixRows rows(shape, part.begin, part.end);
  Packed packed;
  for (int m = 0; m < rows.matrices(); ++m)
    packed.push_back(packed_rows(entry, rows.of(entry, m), rows.rows(), shape.back()));
  forget_pages(entry.bytes());
  return packed_weight(entry, std::move(packed), shape.size() == 3);
}

Weight WeightStore::native_affine(std::string_view path, const TensorEntry& codes, const TensorEntry& scales,
                                  const mx::Shape& shape, const QuantSpec& spec, RowRange part) {
  const bool is_mxfp4 = spec.kind == WeightKind::mxfp4;
  if (!is_mxfp4 && (spec.kind != WeightKind::affine || !kernels::has_packed_affine(spec.bits, spec.group)))
    refuse_native(codes, spec.text());
  std::vector<const TensorEntry*> planes = {&codes, &scales};
  if (!is_mxfp4) {
    const std::string name = fmt::format("{}.biases", path);
    if (!has(name)) {
      miss(name);
      return zero_weight(shape);
    }
    const TensorEntry& biases = take(name).entry;
    check_shape(biases, scales.shape);
    check_dtype(biases, scales.format);
    planes.push_back(&biases);
  }
  const kernels::PackedFormat format = is_mxfp4
                                           ? kernels::packed_format(kernels::BlockFormat::mxfp4)
                                           : kernels::packed_affine(spec.bits, spec.group, scale_type(scales.format));
  const MatrixRows rows(shape, part.begin, part.end);
  const kernels::PackedShape layout{format, rows.rows(), shape.back()};
  Packed packed;
  for (int m = 0; m < rows.matrices(); ++m) {
    std::vector<std::span<const std::byte>> own;
    for (const TensorEntry* plane : planes) own.push_back(rows.of(*plane, m));
    packed.push_back(packed_once(codes, own[0], layout, [&] {
      const auto forget = [&](std::int64_t begin, std::int64_t end) {
        for (const auto bytes : own) forget_rows(bytes, rows.rows(), begin, end);
      };
      const kernels::AffinePlanes bytes{own[0].data(), own[1].data(), is_mxfp4 ? nullptr : own[2].data()};
      return std::make_shared<const ops::PackedMatrix>(layout, bytes, *pool_, forget);
    }));
  }
  for (const TensorEntry* plane : planes) forget_pages(plane->bytes());
  return packed_weight(codes, std::move(packed), shape.size() == 3);
}

std::vector<float> WeightStore::values(std::string_view path, int rows, int columns) {
  std::vector<float> values(checked_mul(static_cast<std::size_t>(rows), static_cast<std::size_t>(columns), path));
  const std::string name = fmt::format("{}.weight", path);
  Slot* const slot = find(name);
  if (!slot) {
    miss(name);
    return values;
  }
  if (slot->entry.format == TensorFormat::f32) {
    restore_single_row(slot->entry, {rows, columns});
    const mx::array plain = dense(name, {rows, columns});
    std::copy_n(plain.data<float>(), values.size(), values.begin());
    forget_pages(slot->entry.bytes());
    return values;
  }
  const Unquantized as_it_is(quantize_);
  const Weight weight = matrix(path, rows, columns);
  if (weight.kind != WeightKind::packed) return values;  // a plane is missing
  for (int row = 0; row < rows; ++row)
    kernels::dequant_packed_row(weight.packed->shape(), weight.packed->data(), row,
                                values.data() + static_cast<std::ptrdiff_t>(row) * columns);
  return values;
}

}  // namespace godwit::checkpoint
