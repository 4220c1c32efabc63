// Matrices of experts in the forms that checkpoints have: stacked, one tensor an expert, or fused with
// another projection.
#include <fmt/format.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/mx_ops.h"
#include "checkpoint/weight_store.h"

namespace godwit::checkpoint {
namespace {

constexpr std::string_view kOrigin = "weights";

std::string join(std::string_view scope, std::string_view name) {
  return scope.empty() ? std::string(name) : fmt::format("{}.{}", scope, name);
}

std::string path_of(const std::string& pattern, int expert) {
  std::string path = pattern;
  const std::size_t at = path.find("{}");
  GODWIT_CHECK(at != std::string::npos, "no {{}} in {}", pattern);
  return path.replace(at, 2, std::to_string(expert));
}

bool alike(const Weight& a, const Weight& b) {
  const auto same_dtype = [](const std::optional<mx::array>& x, const std::optional<mx::array>& y) {
    return x.has_value() == y.has_value() && (!x || x->dtype() == y->dtype());
  };
  if (a.kind != b.kind || a.format != b.format) return false;
  if (a.packed) return a.packed->shape().format == b.packed->shape().format;
  return a.bits == b.bits && a.group == b.group && a.data.dtype() == b.data.dtype() &&
         same_dtype(a.scales, b.scales) && same_dtype(a.biases, b.biases);
}

// One weight from packed matrices, which stay where they are.
Weight grouped(const std::vector<Weight>& parts) {
  Weight weight = parts[0];
  weight.experts = static_cast<int>(parts.size());
  weight.packed = nullptr;
  for (const Weight& part : parts) weight.packed_experts.push_back(part.packed);
  return weight;
}

// One weight from those of single experts. Evaluated at once, so that no second copy stays.
Weight stacked(const std::vector<Weight>& parts) {
  if (parts[0].packed) return grouped(parts);
  const auto stack = [&](auto plane) {
    std::vector<mx::array> planes;
    planes.reserve(parts.size());
    for (const Weight& part : parts) planes.push_back(plane(part));
    return mx::stack(planes, 0);
  };
  Weight weight = parts[0];
  weight.experts = static_cast<int>(parts.size());
  weight.data = stack([](const Weight& part) { return part.data; });
  if (weight.scales) weight.scales = stack([](const Weight& part) { return *part.scales; });
  if (weight.biases) weight.biases = stack([](const Weight& part) { return *part.biases; });
  weight.evaluate();
  return weight;
}

Weight contiguous(Weight weight) {
  weight.data = mx::contiguous(weight.data);
  if (weight.scales) weight.scales = mx::contiguous(*weight.scales);
  if (weight.biases) weight.biases = mx::contiguous(*weight.biases);
  weight.evaluate();
  return weight;
}

}  // namespace

Weight WeightStore::experts(std::string_view scope, const ExpertNames& names, int experts, int rows,
                            int columns) {
  GODWIT_CHECK(experts > 0 && !names.stacked.empty(), "{} experts at {}", experts, scope);
  const std::string path = join(scope, names.stacked);
  const std::string name = fmt::format("{}.weight", path);
  if (!has(name) && !names.each.empty()) {
    const std::string pattern = join(scope, names.each);
    if (has(path_of(pattern, 0) + ".weight")) return each_expert(pattern, experts, rows, columns);
  }
  if (!has(name) && !names.fused.empty()) {
    const std::string fused = join(scope, names.fused);
    if (has(fused) || has(fused + ".weight")) return fused_experts(fused, names, experts, rows, columns);
  }
  return planes(path, name, {experts, rows, columns});
}

Weight WeightStore::each_expert(const std::string& pattern, int experts, int rows, int columns) {
  std::vector<Weight> parts;
  bool complete = true;
  for (int e = 0; e < experts; ++e) {
    const std::string path = path_of(pattern, e);
    parts.push_back(matrix(path, rows, columns));  // a missing one, or a missing plane of it, is recorded there
    complete = complete && has(path + ".weight") && native() == (parts.back().kind == WeightKind::packed);
  }
  if (!complete) return zero_weight({experts, rows, columns});
  for (int e = 1; e < experts; ++e)
    if (!alike(parts[0], parts[static_cast<std::size_t>(e)]))
      fail(ErrorCode::corrupt_file, kOrigin, "{}: experts 0 and {} of {} differ in their format", origin_, e,
           pattern);
  return stacked(parts);
}

Weight WeightStore::fused_experts(const std::string& path, const ExpertNames& names, int experts, int rows,
                                  int columns) {
  using Part = ExpertNames::Part;
  const std::string name = has(path) ? path : path + ".weight";
  const int all = checked_cast<int>(std::int64_t{rows} * (names.part == Part::whole ? 1 : 2), path);
  const int begin = names.part == Part::second_half ? rows : 0;
  if (native()) {
    if (names.is_transposed)
      refuse_native(entry(name), fmt::format("{} with its axes swapped", info(entry(name).format).name));
    return planes(path, name, {experts, all, columns}, {begin, begin + rows});
  }
  Weight weight = names.is_transposed ? planes(path, name, {experts, columns, all})
                                      : planes(path, name, {experts, all, columns});
  if (names.is_transposed) {
    if (weight.kind != WeightKind::dense)
      fail(ErrorCode::unsupported, kOrigin, "{}: a quantized tensor with its axes swapped",
           describe(entry(name)));
    weight.data = mx::swapaxes(weight.data, 1, 2);
    take_shape(weight, {experts, all, columns});
  }
  if (names.part == Part::whole) return names.is_transposed ? contiguous(std::move(weight)) : weight;
  return contiguous(weight.slice_rows(begin, begin + rows));
}

}  // namespace godwit::checkpoint
