#include "checkpoint/quantization.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace godwit::checkpoint {
namespace {

constexpr std::string_view kOrigin = "quantization";

struct Mode {
  std::string_view name;
  WeightKind kind;
  int bits, group;  // fixed by the mode, 0 where free
};
constexpr std::array<Mode, 4> kModes = {{{"affine", WeightKind::affine, 0, 0},  // what a missing mode means
                                         {"mxfp4", WeightKind::mxfp4, 4, 32},
                                         {"mxfp8", WeightKind::mxfp8, 8, 32},
                                         {"nvfp4", WeightKind::nvfp4, 4, 16}}};

bool affine_exists(int bits, int group) {
  constexpr std::array kBits = {2, 3, 4, 5, 6, 8};
  constexpr std::array kGroups = {32, 64, 128};
  return std::find(kBits.begin(), kBits.end(), bits) != kBits.end() &&
         std::find(kGroups.begin(), kGroups.end(), group) != kGroups.end();
}

std::optional<int> small_integer(const Json& object, const char* key, const std::string& what) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return std::nullopt;
  if (!found->is_number_integer() || found->get<std::int64_t>() < 1 || found->get<std::int64_t>() > 4096)
    fail(ErrorCode::corrupt_file, kOrigin, "{}: {} is {}", what, key, dump_json(*found));
  return found->get<int>();
}

const Mode& mode_of(const Json& object, const std::string& what) {
  const auto found = object.find("mode");
  if (found == object.end() || found->is_null()) return kModes[0];
  for (const Mode& mode : kModes)
    if (found->is_string() && found->get_ref<const std::string&>() == mode.name) return mode;
  fail(ErrorCode::unsupported, kOrigin, "{}: mode {} is none of affine, mxfp4, mxfp8, nvfp4", what,
       dump_json(*found));
}

// An override without a mode is affine whatever the default: mlx-lm writes the routers of mxfp4 models so.
// Other keys that it leaves out come from the defaults of its mode.
QuantSpec read_spec(const Json& object, const QuantSpec& defaults, const std::string& what) {
  const Mode& mode = mode_of(object, what);
  QuantSpec absent;
  if (mode.kind == defaults.kind)
    absent = defaults;
  else if (mode.kind != WeightKind::affine)
    absent = {mode.kind, mode.bits, mode.group};
  const QuantSpec spec{mode.kind, small_integer(object, "bits", what).value_or(absent.bits),
                       small_integer(object, "group_size", what).value_or(absent.group)};
  const bool exists = mode.kind == WeightKind::affine ? affine_exists(spec.bits, spec.group)
                                                      : spec.bits == mode.bits && spec.group == mode.group;
  if (!exists) fail(ErrorCode::unsupported, kOrigin, "{}: {} does not exist", what, spec.text());
  return spec;
}

}  // namespace

std::string QuantSpec::text() const {
  for (const Mode& mode : kModes)
    if (mode.kind == kind) return fmt::format("{} {}-bit group {}", mode.name, bits, group);
  return "dense";
}

QuantizationMap::QuantizationMap(const Json& object, std::string_view origin) {
  const std::string what = fmt::format("{}: quantization", origin);
  if (!object.is_object()) fail(ErrorCode::corrupt_file, kOrigin, "{} is {}", what, dump_json(object));
  if (const auto method = object.find("quant_method"); method != object.end() && !method->is_null())
    fail(ErrorCode::unsupported, kOrigin, "{}: quant_method {} cannot be read", what, dump_json(*method));
  if (const auto activations = object.find("quantize_activations");
      activations != object.end() && *activations == Json(true))
    fail(ErrorCode::unsupported, kOrigin, "{}: quantize_activations is not offered", what);
  const bool has_defaults =
      object.contains("bits") || object.contains("group_size") || object.contains("mode");
  QuantSpec base;
  if (has_defaults) {
    base = read_spec(object, base, what);
    defaults_ = base;
  }
  for (const auto& [path, value] : object.items()) {
    if (value.is_object() && path != "config_groups")
      overrides_.emplace(path, read_spec(value, base, what + ": " + path));
    else if (value.is_boolean() && !value.get<bool>())
      overrides_.emplace(path, std::nullopt);
  }
}

QuantizationMap::Answer QuantizationMap::of(std::string_view path) const {
  const auto found = overrides_.find(path);
  if (found != overrides_.end())
    return found->second ? Answer{Says::spec, *found->second} : Answer{Says::dense, {}};
  return {};
}

Json QuantizationMap::to_json() const {
  if (empty()) return nullptr;
  Json overrides = Json::object();
  for (const auto& [path, spec] : overrides_) overrides[path] = spec ? Json(spec->text()) : Json(false);
  return {{"defaults", defaults_ ? Json(defaults_->text()) : Json(nullptr)}, {"overrides", overrides}};
}

QuantSpec infer_quantization(int columns, int packed, int scale, bool scales_are_bytes,
                             std::string_view tensor) {
  const auto refuse = [&]() {
    fail(ErrorCode::corrupt_file, kOrigin,
         "{}: {} packed words and {} scales a row fit no format for {} columns", tensor, packed, scale,
         columns);
  };
  if (columns <= 0 || packed <= 0 || scale <= 0 || columns % scale != 0) refuse();
  const std::int64_t bits_of_row = std::int64_t{packed} * 32;
  if (bits_of_row % columns != 0) refuse();
  const QuantSpec spec{WeightKind::affine, static_cast<int>(bits_of_row / columns), columns / scale};
  if (!scales_are_bytes) {
    if (!affine_exists(spec.bits, spec.group)) refuse();
    return spec;
  }
  for (const Mode& mode : kModes)
    if (mode.bits == spec.bits && mode.group == spec.group) return {mode.kind, spec.bits, spec.group};
  refuse();
  return spec;
}

}  // namespace godwit::checkpoint
