#include "checkpoint/weight_store.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/error.h"
#include "base/mx_ops.h"
#include "checkpoint/repack.h"
#include "checkpoint/row_order.h"

namespace godwit::checkpoint {
namespace {

constexpr std::string_view kOrigin = "weights";
constexpr std::size_t kMaxListed = 24;

bool is_f8(TensorFormat format) {
  return format == TensorFormat::f8_e4m3 || format == TensorFormat::f8_e5m2 ||
         format == TensorFormat::f8_e8m0;
}

[[noreturn]] void refuse_format(const TensorEntry& entry, std::string_view wanted) {
  fail(ErrorCode::unsupported, kOrigin, "{} is {}, wanted {}", describe(entry), info(entry.format).name,
       wanted);
}

mx::array unpermuted_indices(const TensorEntry& entry, int rows) {
  return mx::array(unpermuted_rows(entry, rows).data(), {rows}, mx::int32);
}

// Gathers in the engine's own order and evaluates, so that no lazy array leaves the loader.
void restore_rows(const TensorEntry& entry, Weight& weight) {
  if (entry.permuted_heads == 0) return;
  weight = weight.take_rows(unpermuted_indices(entry, weight.rows));
  weight.evaluate();
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

void WeightStore::check_dtype(const TensorEntry& entry, TensorFormat wanted) {
  if (entry.format != wanted) refuse_format(entry, info(wanted).name);
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

Weight WeightStore::zero_weight(const mx::Shape& shape) {
  Weight weight{.kind = WeightKind::dense,
                .format = TensorFormat::f32,
                .data = mx::zeros(shape, mx::float32),
                .scales = std::nullopt,
                .biases = std::nullopt};
  take_shape(weight, shape);
  return weight;
}

// The logical shape [rows, columns] or [experts, rows, columns].
void WeightStore::take_shape(Weight& weight, const mx::Shape& shape) {
  weight.columns = shape.back();
  weight.rows = shape[shape.size() - 2];
  weight.experts = shape.size() == 3 ? shape[0] : 0;
}

Weight WeightStore::matrix(std::string_view path, int rows, int columns) {
  return planes(path, fmt::format("{}.weight", path), {rows, columns});
}

std::shared_ptr<const Weight> WeightStore::exchangeable_matrix(std::string_view path, int rows, int columns) {
  auto weight = std::make_shared<Weight>(matrix(path, rows, columns));
  exchangeable_.emplace_back(path, weight);
  return weight;
}

std::vector<WeightStore::Exchangeable> WeightStore::exchangeable() const {
  std::vector<Exchangeable> held;
  for (const auto& [path, weight] : exchangeable_)
    if (auto there = weight.lock()) held.push_back({path, std::move(there)});
  return held;
}

// Writers of GGUF files drop an axis of one row.
void WeightStore::restore_single_row(TensorEntry& entry, const mx::Shape& shape) {
  if (shape.size() == 2 && shape[0] == 1 && entry.shape == mx::Shape{shape[1]}) entry.shape = shape;
}

Weight WeightStore::planes(std::string_view path, const std::string& name, const mx::Shape& shape, RowRange part) {
  Slot* const slot = find(name);
  if (!slot) {
    miss(name);
    return zero_weight(shape);
  }
  slot->used = true;
  TensorEntry& entry = slot->entry;
  restore_single_row(entry, shape);
  if (is_block_format(entry.format)) return native() ? native_rows(entry, shape, part) : block_planes(entry, shape);
  const auto said = quantization_.of(path);
  const bool has_scales = has(fmt::format("{}.scales", path));
  if (has_scales && said.says == QuantizationMap::Says::dense)
    fail(ErrorCode::corrupt_file, kOrigin, "{}: the quantization map says dense, but {}.scales exists",
         describe(entry), path);
  if (has_scales) return packed_planes(path, *slot, shape, part);
  if (said.says == QuantizationMap::Says::spec)
    fail(ErrorCode::corrupt_file, kOrigin, "{}: the quantization map says {}, but there is no {}.scales",
         describe(entry), said.spec.text(), path);
  check_shape(entry, shape);
  if (!is_float(entry.format)) refuse_format(entry, "F32, F16, BF16 or a quantized form");
  if (native()) return native_rows(entry, shape, part);
  Weight weight{.kind = WeightKind::dense,
                .format = entry.format,
                .data = to_array(entry),
                .scales = std::nullopt,
                .biases = std::nullopt};
  take_shape(weight, shape);
  restore_rows(entry, weight);
  return weight;
}

Weight WeightStore::block_planes(const TensorEntry& entry, const mx::Shape& shape) const {
  check_shape(entry, shape);
  Weight weight = load_blocks(entry);
  take_shape(weight, shape);
  restore_rows(entry, weight);
  return weight;
}

// weight u32 [.., rows, columns * bits / 32], scales and (affine) biases [.., rows, columns / group].
Weight WeightStore::packed_planes(std::string_view path, Slot& slot, const mx::Shape& shape, RowRange part) {
  const TensorEntry& packed = slot.entry;
  const TensorEntry& scales = take(fmt::format("{}.scales", path)).entry;
  if (packed.format != TensorFormat::u32) refuse_format(packed, "U32, as its scales say");
  const bool are_bytes = scales.format == TensorFormat::u8;
  if (!are_bytes && !is_float(scales.format)) refuse_format(scales, "a float or U8");
  const auto check_plane = [&](const TensorEntry& plane) {
    mx::Shape wanted = shape;
    if (plane.shape.size() == shape.size()) wanted.back() = plane.shape.back();
    check_shape(plane, wanted);
  };
  check_plane(packed);
  check_plane(scales);
  const QuantSpec spec =
      infer_quantization(shape.back(), packed.shape.back(), scales.shape.back(), are_bytes, describe(packed));
  const auto said = quantization_.of(path);
  if (said.says == QuantizationMap::Says::spec && said.spec != spec)
    fail(ErrorCode::corrupt_file, kOrigin, "{}: the quantization map says {}, its shapes {} and {} say {}",
         describe(packed), said.spec.text(), shape_text(packed.shape), shape_text(scales.shape), spec.text());
  if (native()) return native_affine(path, packed, scales, shape, spec, part);
  Weight weight{.kind = spec.kind,
                .format = packed.format,
                .bits = spec.bits,
                .group = spec.group,
                .data = to_array(packed),
                .scales = to_array(scales),
                .biases = std::nullopt};
  take_shape(weight, shape);
  if (spec.kind == WeightKind::affine) {
    const std::string name = fmt::format("{}.biases", path);
    weight.biases = dense(name, scales.shape);
    if (has(name)) check_dtype(entry(name), scales.format);
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

WeightMarks WeightStore::marks() const {
  WeightMarks marks{.used = {}, .missing = missing_};
  for (const auto& [name, slot] : tensors_)
    if (slot.used) marks.used.insert(name);
  return marks;
}

void WeightStore::restore(WeightMarks marks) {
  for (auto& [name, slot] : tensors_) slot.used = marks.used.contains(name);
  missing_ = std::move(marks.missing);
}

}  // namespace godwit::checkpoint
