// How a checkpoint's config says its matrices are quantized, by module path.
//
// `quantization` (or quantization_config) holds defaults {group_size, bits, mode} and per-path overrides: an
// object with any of those keys, or false for "stays dense". A map only predicts: the tensors' shapes decide,
// and where both speak and disagree the load fails naming both.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/mx.h"
#include "checkpoint/weight.h"

namespace godwit::checkpoint {

struct QuantSpec {
  WeightKind kind = WeightKind::affine;
  int bits = 4;
  int group = 64;

  bool operator==(const QuantSpec&) const = default;
  std::string text() const;  // "affine 4-bit group 64"
};

class QuantizationMap {
 public:
  enum class Says { nothing, dense, spec };
  struct Answer {
    Says says = Says::nothing;
    QuantSpec spec;
  };

  QuantizationMap() = default;
  // Throws Error{corrupt_file} for bits, groups or modes that cannot exist, Error{unsupported} for foreign
  // methods.
  QuantizationMap(const Json& object, std::string_view origin);

  bool empty() const { return !defaults_ && overrides_.empty(); }
  const std::optional<QuantSpec>& defaults() const { return defaults_; }
  // Only an override says "dense"; the defaults apply where the file has scales.
  Answer of(std::string_view path) const;
  // {"defaults": "affine 4-bit group 64", "overrides": {path: the same, or false}}; null for an empty map.
  Json to_json() const;
  // The override keys, translated by `rename` as tensor names are (an absent result keeps the key).
  template <typename Rename>
  void rename_paths(Rename&& rename) {
    std::map<std::string, std::optional<QuantSpec>, std::less<>> renamed;
    for (auto& [path, spec] : overrides_) renamed.emplace(rename(path), spec);
    overrides_ = std::move(renamed);
  }

 private:
  std::optional<QuantSpec> defaults_;
  std::map<std::string, std::optional<QuantSpec>, std::less<>> overrides_;  // nullopt: false in the file
};

// The format that shapes and dtype imply for a matrix with `columns` inputs: `packed` and `scale` are the
// last dimensions of weight and scales. Throws Error{corrupt_file} naming `tensor` when no format fits.
QuantSpec infer_quantization(int columns, int packed, int scale, bool scales_are_bytes,
                             std::string_view tensor);

}  // namespace godwit::checkpoint
