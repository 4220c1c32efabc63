// A reference layer in a graph that is recorded once and replayed: what it computes over, as inputs.
#include <fmt/format.h>

#include "base/error.h"
#include "base/mx_ops.h"
#include "cache/reference_layer.h"

namespace godwit::cache {

// A ring that is full always has its order as an input: once a lap that is the order of positions, and the same graph
// serves it. Turbo unfolds its groups by literal shapes, and a kv_config.json's affine codecs are attended in tiles
// whose number follows the columns: neither serves other lengths.
StepSlot ReferenceLayer::slot() const {
  const bool is_plain = span_.tokens == 1 && span_.kind == SpanKind::causal && !reads_only_ && span_.together.empty();
  const bool is_kept = group_.need.content == Content::keys_values || group_.need.content == Content::keys_as_values;
  if (!is_plain || !is_kept || columns() < 2) return {};
  const bool is_tiled = codec_.kind == CodecKind::affine && row_.choices->policy().per_layer;
  if (!is_full_ring() && (codec_.kind == CodecKind::turbo || is_tiled)) return {};
  const std::string codec = fmt::format("{}:{}", codec_.kind == CodecKind::dense ? "dense" : to_string(codec_),
                                        static_cast<int>(places()[0][0].dtype.val()));
  if (is_full_ring()) return {SlotKind::fixed, fmt::format("ring{}:{}{}", window(), codec, is_tiled ? ":tiled" : "")};
  return {SlotKind::growing, fmt::format("{}{}", codec, ring_ && !ring_->temporal() ? ":ordered" : "")};
}

std::vector<mx::array> ReferenceLayer::slot_inputs() const {
  std::vector<mx::array> inputs;
  for (std::size_t plane = 0; plane < places().size(); ++plane)
    for (mx::array& component : stored_columns(plane, columns() - 1)) inputs.push_back(std::move(component));
  if (ring_ && (is_full_ring() || !ring_->temporal())) inputs.push_back(column_order(*ring_));
  return inputs;
}

void ReferenceLayer::bind(const std::vector<mx::array>& inputs) {
  GODWIT_CHECK(!bound_ && fresh_.empty(), "a layer that has begun is bound");
  Bound bound;
  auto next = inputs.begin();
  for (const std::vector<ComponentPlace>& plane : places()) {
    GODWIT_CHECK(static_cast<std::size_t>(inputs.end() - next) >= plane.size(), "too few inputs of a layer");
    bound.stored.emplace_back(next, next + static_cast<std::ptrdiff_t>(plane.size()));
    next += static_cast<std::ptrdiff_t>(plane.size());
  }
  if (next != inputs.end()) bound.order = *next++;
  GODWIT_CHECK(next == inputs.end(), "too many inputs of a layer");
  bound_ = std::move(bound);
}

void ReferenceLayer::accept(const std::vector<mx::array>& outputs) {
  GODWIT_CHECK(fresh_.empty(), "a layer stored twice in one Step");
  std::vector<Components> fresh;
  auto next = outputs.begin();
  for (const std::vector<ComponentPlace>& plane : places()) {
    GODWIT_CHECK(static_cast<std::size_t>(outputs.end() - next) >= plane.size(), "too few outputs of a layer");
    fresh.emplace_back(next, next + static_cast<std::ptrdiff_t>(plane.size()));
    next += static_cast<std::ptrdiff_t>(plane.size());
  }
  GODWIT_CHECK(next == outputs.end(), "too many outputs of a layer");
  fresh_ = std::move(fresh);
}

}  // namespace godwit::cache
