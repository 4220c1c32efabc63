#include "checkpoint/weight_store.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/error.h"
#include "base/file_pages.h"
#include "base/mx_ops.h"
#include "checkpoint/repack.h"

namespace godwit::checkpoint {
namespace {

constexpr std::string_view kOrigin = "weights";
constexpr std::size_t kMaxListed = 24;

bool is_float(TensorFormat format) {
  return format == TensorFormat::f32 || format == TensorFormat::f16 || format == TensorFormat::bf16;
}

bool is_f8(TensorFormat format) {
  return format == TensorFormat::f8_e4m3 || format == TensorFormat::f8_e5m2 ||
         format == TensorFormat::f8_e8m0;
}

[[noreturn]] void refuse_format(const TensorEntry& entry, std::string_view wanted) {
  fail(ErrorCode::unsupported, kOrigin, "{} is {}, wanted {}", describe(entry), info(entry.format).name,
       wanted);
}

// Rows stored in rotation pairs (0, D/2, 1, D/2 + 1, ...) back to halves (0, 1, ..., D - 1), for each head.
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

mx::array unpermuted_indices(const TensorEntry& entry, int rows) {
  return mx::array(unpermuted_rows(entry, rows).data(), {rows}, mx::int32);
}

// Gathers in the engine's own order and evaluates, so that no lazy array leaves the loader.
void restore_rows(const TensorEntry& entry, Weight& weight) {
  if (entry.permuted_heads == 0) return;
  weight = weight.take_rows(unpermuted_indices(entry, weight.rows));
  std::vector<mx::array> planes = {weight.data};
  if (weight.scales) planes.push_back(*weight.scales);
  if (weight.biases) planes.push_back(*weight.biases);
  mx::eval(planes);
}

template <typename Names>
std::string listed(const Names& names) {
  std::string text;
  std::size_t shown = 0;
  for (const auto& name : names) {
    if (++shown > kMaxListed) return text + fmt::format(", and {} more", names.size() - kMaxListed);
    text += (shown > 1 ? ", " : "") + std::string(name);
  }
  return text;
}

}  // namespace

WeightStore::WeightStore(std::vector<TensorEntry> tensors, QuantizationMap quantization, std::string origin,
                         const WeightRules& rules, bool norms_include_one)
    : quantization_(std::move(quantization)),
      origin_(std::move(origin)),
      norms_include_one_(norms_include_one) {
  const auto is_dropped = [&](std::string_view name) {
    return std::any_of(rules.drop.begin(), rules.drop.end(),
                       [&](const std::string& part) { return name.find(part) != std::string_view::npos; });
  };
  for (TensorEntry& entry : tensors) {
    if (is_dropped(entry.name)) continue;
    std::string name = rules.rename ? rules.rename(entry.name) : entry.name;
    const std::string source = describe(entry);
    const auto [at, is_new] = tensors_.emplace(std::move(name), Slot{std::move(entry)});
    if (!is_new)
      fail(ErrorCode::corrupt_file, kOrigin, "{} and {} both become {}", source, at->second.entry.name,
           at->first);
  }
  if (rules.rename) quantization_.rename_paths([&](const std::string& path) { return rules.rename(path); });
}

std::vector<std::string> WeightStore::names(std::string_view prefix) const {
  std::vector<std::string> found;
  for (auto at = tensors_.lower_bound(prefix); at != tensors_.end() && at->first.starts_with(prefix); ++at)
    found.push_back(at->first);
  return found;
}

std::vector<std::filesystem::path> WeightStore::files() const {
  std::set<std::filesystem::path> found;
  for (const auto& [name, slot] : tensors_)
    if (slot.entry.file) found.insert(slot.entry.file->path());
  return {found.begin(), found.end()};
}

WeightStore::Slot* WeightStore::find(std::string_view name) {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

const TensorEntry& WeightStore::entry(std::string_view name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end())
    fail(ErrorCode::not_found, kOrigin, "{}: there is no tensor {}", origin_, name);
  return found->second.entry;
}

WeightStore::Slot& WeightStore::take(std::string_view name) {
  Slot* const slot = find(name);
  if (!slot) fail(ErrorCode::not_found, kOrigin, "{}: there is no tensor {}", origin_, name);
  slot->used = true;
  return *slot;
}

void WeightStore::check_shape(const TensorEntry& entry, const mx::Shape& wanted) const {
  if (entry.shape != wanted)
    fail(ErrorCode::corrupt_file, kOrigin, "{} has shape {}, the model needs {}", describe(entry),
         shape_text(entry.shape), shape_text(wanted));
}

std::optional<mx::array> WeightStore::dense_if_present(std::string_view name, const mx::Shape& shape) {
  if (!has(name)) return std::nullopt;
  return dense(name, shape);
}

mx::array WeightStore::dense(std::string_view name, const mx::Shape& shape) {
  if (!has(name)) {
    miss(std::string(name));
    return mx::zeros(shape, mx::float32);
  }
  Slot& slot = take(name);
  check_shape(slot.entry, shape);
  if (is_block_format(slot.entry.format) || is_f8(slot.entry.format))
    refuse_format(slot.entry, "a plain dtype");
  mx::array values = to_array(slot.entry);
  if (slot.entry.permuted_heads == 0) return values;
  values = mx::take(values, unpermuted_indices(slot.entry, slot.entry.shape[0]), 0);
  values.eval();
  return values;
}

mx::array WeightStore::raw(std::string_view name) {
  const TensorEntry& entry = take(name).entry;
  return is_block_format(entry.format) ? to_byte_array(entry) : to_array(entry);
}

void WeightStore::consume(std::string_view name) { take(name); }

Weight WeightStore::zero_matrix(int rows, int columns) const {
  return {.kind = WeightKind::dense,
          .format = TensorFormat::f32,
          .rows = rows,
          .columns = columns,
          .data = mx::zeros({rows, columns}, mx::float32),
          .scales = std::nullopt,
          .biases = std::nullopt};
}

Weight WeightStore::matrix(std::string_view path, int rows, int columns) {
  const std::string name = fmt::format("{}.weight", path);
  Slot* const slot = find(name);
  if (!slot) {
    miss(name);
    return zero_matrix(rows, columns);
  }
  slot->used = true;
  const TensorEntry& entry = slot->entry;
  if (native()) return native_matrix(entry, rows, columns);
  if (is_block_format(entry.format)) return block_matrix(*slot, rows, columns);
  const auto said = quantization_.of(path);
  const bool has_scales = has(fmt::format("{}.scales", path));
  if (has_scales && said.says == QuantizationMap::Says::dense)
    fail(ErrorCode::corrupt_file, kOrigin, "{}: the quantization map says dense, but {}.scales exists",
         describe(entry), path);
  if (has_scales) return packed_matrix(path, *slot, rows, columns);
  if (said.says == QuantizationMap::Says::spec)
    fail(ErrorCode::corrupt_file, kOrigin, "{}: the quantization map says {}, but there is no {}.scales",
         describe(entry), said.spec.text(), path);
  check_shape(entry, {rows, columns});
  if (!is_float(entry.format)) refuse_format(entry, "F32, F16, BF16 or a quantized form");
  Weight weight{.kind = WeightKind::dense,
                .format = entry.format,
                .rows = rows,
                .columns = columns,
                .data = to_array(entry),
                .scales = std::nullopt,
                .biases = std::nullopt};
  restore_rows(entry, weight);
  return weight;
}

Weight WeightStore::block_matrix(Slot& slot, int rows, int columns) {
  check_shape(slot.entry, {rows, columns});
  Weight weight = load_blocks(slot.entry);
  restore_rows(slot.entry, weight);
  return weight;
}

Weight WeightStore::native_matrix(const TensorEntry& entry, int rows, int columns) const {
  if (!is_block_format(entry.format) || !kernels::has_packed_layout(block_format(entry.format)))
    fail(ErrorCode::unsupported, kOrigin, "{} is {}, a format that no native kernel multiplies by",
         describe(entry), info(entry.format).name);
  check_shape(entry, {rows, columns});
  std::span<const std::byte> bytes = entry.bytes();
  std::vector<std::byte> ordered;
  if (entry.permuted_heads != 0) {
    const std::size_t row_bytes = bytes.size() / static_cast<std::size_t>(rows);
    for (const int row : unpermuted_rows(entry, rows)) {
      const auto source = bytes.subspan(static_cast<std::size_t>(row) * row_bytes, row_bytes);
      ordered.insert(ordered.end(), source.begin(), source.end());
    }
    bytes = ordered;
  }
  const kernels::PackedShape shape{block_format(entry.format), rows, columns};
  auto packed = std::make_shared<ops::PackedMatrix>(shape, bytes, *pool_);
  forget_pages(entry.bytes());  // the packed matrix is the one copy that is kept
  return {.kind = WeightKind::packed,
          .format = entry.format,
          .rows = rows,
          .columns = columns,
          .data = mx::array({}, mx::uint8),
          .scales = std::nullopt,
          .biases = std::nullopt,
          .packed = std::move(packed)};
}

// weight u32 [rows, columns * bits / 32], scales and (affine) biases [rows, columns / group].
Weight WeightStore::packed_matrix(std::string_view path, Slot& slot, int rows, int columns) {
  const TensorEntry& packed = slot.entry;
  const TensorEntry& scales = take(fmt::format("{}.scales", path)).entry;
  if (packed.format != TensorFormat::u32) refuse_format(packed, "U32, as its scales say");
  const bool are_bytes = scales.format == TensorFormat::u8;
  if (!are_bytes && !is_float(scales.format)) refuse_format(scales, "a float or U8");
  if (packed.shape.size() != 2) check_shape(packed, {rows, columns});
  if (scales.shape.size() != 2) check_shape(scales, {rows, columns});
  const QuantSpec spec =
      infer_quantization(columns, packed.shape[1], scales.shape[1], are_bytes, describe(packed));
  check_shape(packed, {rows, packed.shape[1]});
  check_shape(scales, {rows, scales.shape[1]});
  const auto said = quantization_.of(path);
  if (said.says == QuantizationMap::Says::spec && said.spec != spec)
    fail(ErrorCode::corrupt_file, kOrigin, "{}: the quantization map says {}, its shapes {} and {} say {}",
         describe(packed), said.spec.text(), shape_text(packed.shape), shape_text(scales.shape), spec.text());
  Weight weight{.kind = spec.kind,
                .format = packed.format,
                .rows = rows,
                .columns = columns,
                .bits = spec.bits,
                .group = spec.group,
                .data = to_array(packed),
                .scales = to_array(scales),
                .biases = std::nullopt};
  if (spec.kind == WeightKind::affine) {
    weight.biases = dense(fmt::format("{}.biases", path), scales.shape);
    if (weight.biases->dtype() != weight.scales->dtype() && has(fmt::format("{}.biases", path)))
      refuse_format(entry(fmt::format("{}.biases", path)), info(scales.format).name);
  }
  return weight;
}

void WeightStore::audit() const {
  std::vector<std::string_view> unused;
  for (const auto& [name, slot] : tensors_)
    if (!slot.used) unused.push_back(name);
  if (unused.empty() && missing_.empty()) return;
  std::string message = origin_ + ":";
  if (!missing_.empty())
    message += fmt::format(" {} parameters are missing ({})", missing_.size(), listed(missing_));
  if (!unused.empty())
    message += fmt::format("{} {} tensors belong to no parameter ({})", missing_.empty() ? "" : ";",
                           unused.size(), listed(unused));
  throw Error(ErrorCode::corrupt_file, kOrigin, message);
}

}  // namespace godwit::checkpoint
