#include <numeric>

#include "base/error.h"
#include "cache/conversion.h"
#include "cache/cross_layer.h"
#include "cache/native_layer.h"
#include "cache/recurrent_layer.h"
#include "cache/reference_layer.h"
#include "cache/step_impl.h"

namespace godwit::cache {
namespace {

// Room for every row and group, or for none.
void make_room(const StoreChoices& choices, std::span<const RowSpan> spans) {
  try {
    for (const RowSpan& span : spans) {
      Row::Impl& row = span.row->impl();
      for (std::size_t g = 0; g < row.tables.size(); ++g)
        row.tables[g].make_room(*choices.pool, choices.groups[g].native(row.encoded).bytes, row.length,
                                row.length + span.tokens);
    }
  } catch (...) {
    for (const RowSpan& span : spans) span.row->impl().trim();
    throw;
  }
}

}  // namespace

Step::Impl::Impl(const StoreChoices& shared, std::span<const RowSpan> planned, bool only)
    : choices(shared), reads_only(only), spans(planned.begin(), planned.end()) {
  if (!reads_only) {
    for (const RowSpan& span : spans) maintain(span.row->impl());
    if (choices.is_native()) make_room(choices, spans);
  }
  for (const RowSpan& span : planned) {
    rows.push_back(&span.row->impl());
    offsets.push_back(rows.back()->length);
    tokens.push_back(span.tokens);
  }
  token_count = std::accumulate(tokens.begin(), tokens.end(), 0);
  layers.reserve(choices.places.size());
  for (const LayerPlace& place : choices.places) layers.push_back(make_layer(place));
  for (Row::Impl* row : rows) row->in_step = true;
}

std::unique_ptr<StepLayer> Step::Impl::make_layer(LayerPlace place) const {
  if (place.content == Content::recurrent) return std::make_unique<RecurrentLayer>(choices, place, rows, spans);
  if (place.content == Content::cross) return std::make_unique<CrossLayer>(choices, place, rows, spans);
  if (choices.is_native()) return std::make_unique<NativeLayer>(choices, place, rows, spans, reads_only);
  return std::make_unique<ReferenceLayer>(*rows[0], place, spans[0], reads_only);
}

Step::Impl::~Impl() {
  if (rows.empty()) return;
  for (const auto& layer : layers) layer->abandon();
  for (std::size_t r = 0; r < rows.size(); ++r) {
    Row::Impl& row = *rows[r];
    if (!reads_only && choices.is_native()) {
      for (BlockTable& table : row.tables) table.give_up(row.length, row.length + tokens[r]);
      row.trim();
    }
    row.in_step = false;
  }
}

// Writes what every layer of the group has stored behind the row's tokens, where nobody looks yet.
void Step::Impl::store_reference_group(std::size_t g) {
  const LayerGroup& group = choices.groups[g];
  Row::Impl& row = *rows[0];
  std::vector<const std::vector<Components>*> slots;
  for (const int layer : group.layers)
    slots.push_back(&static_cast<const ReferenceLayer&>(*layers[static_cast<std::size_t>(layer)]).fresh());
  std::optional<ReferenceLayout>& layout = group.reference(row.encoded);
  if (!layout) layout = reference_layout(slots);
  for (std::size_t s = 0; s < slots.size(); ++s) check_layout(layout->slots[s], *slots[s]);
  row.tables[g].make_room(*choices.pool, layout->bytes, row.length, row.length + tokens[0]);
  for (std::size_t s = 0; s < slots.size(); ++s)
    write_planes(row.tables[g], layout->slots[s], *slots[s], row.length, tokens[0]);
}

void Step::Impl::publish() {
  GODWIT_CHECK(!rows.empty(), "a Step published twice");
  GODWIT_CHECK(!reads_only, "a Step that only reads has nothing to publish");
  for (std::size_t i = 0; i < layers.size(); ++i) {
    GODWIT_CHECK(layers[i]->stored(), "layer {} stored nothing in this Step", i);
    std::vector<mx::array> arrays;
    layers[i]->pending(arrays);
    for (const mx::array& array : arrays)
      GODWIT_CHECK(array.status() != mx::array::Status::unscheduled, "publish() before the eval of layer {}", i);
  }
  if (!choices.is_native()) {
    std::size_t stored = 0;
    try {
      for (; stored < choices.groups.size(); ++stored) store_reference_group(stored);
    } catch (...) {
      // Other tables have no room of this Step: what lies there may be a fork's.
      for (std::size_t g = 0; g < stored; ++g) rows[0]->tables[g].give_up(rows[0]->length, rows[0]->length + tokens[0]);
      rows[0]->trim();
      throw;
    }
  }
  for (const auto& layer : layers) layer->publish();
  for (std::size_t r = 0; r < rows.size(); ++r) {
    Row::Impl& row = *rows[r];
    row.length += tokens[r];
    for (std::optional<RingShadow>& ring : row.rings)
      if (ring) append_span(*ring, spans[r]);
    row.trim();
    row.in_step = false;
  }
  rows.clear();
}

Step::Step(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Step::Step(Step&&) noexcept = default;
Step& Step::operator=(Step&&) noexcept = default;
Step::~Step() = default;

NumericMode Step::mode() const { return impl_->choices.signature.mode; }
int Step::token_count() const { return impl_->token_count; }
std::span<const int> Step::row_offsets() const {
  if (impl_->bound_offset)
    fail(ErrorCode::unsupported, "state", "a graph that is recorded for every position reads one as a number");
  return impl_->offsets;
}
std::span<const int> Step::row_tokens() const { return impl_->tokens; }

mx::array Step::offset(int row) const {
  return impl_->bound_offset ? *impl_->bound_offset : mx::array(impl_->offsets.at(static_cast<std::size_t>(row)));
}

LayerState& Step::layer(int index) {
  GODWIT_CHECK(!impl_->rows.empty(), "a published Step");
  GODWIT_CHECK(index >= 0 && index < static_cast<int>(impl_->layers.size()), "layer {}", index);
  const auto at = static_cast<std::size_t>(index);
  if (!impl_->stand_ins.empty() && impl_->stand_ins[at] != nullptr) return *impl_->stand_ins[at];
  return *impl_->layers[at];
}

std::vector<mx::array> Step::pending() const {
  std::vector<mx::array> arrays;
  for (const auto& layer : impl_->layers) layer->pending(arrays);
  return arrays;
}

void Step::publish() { impl_->publish(); }

StepSlot Step::slot(int layer) const { return impl_->layers.at(static_cast<std::size_t>(layer))->slot(); }
std::vector<mx::array> Step::slot_inputs(int layer) const {
  return impl_->layers.at(static_cast<std::size_t>(layer))->slot_inputs();
}
void Step::bind(int layer, const std::vector<mx::array>& inputs) {
  impl_->layers.at(static_cast<std::size_t>(layer))->bind(inputs);
}
void Step::bind_offset(const mx::array& offset) {
  GODWIT_CHECK(impl_->token_count == 1, "a Step of {} tokens cannot be recorded", impl_->token_count);
  impl_->bound_offset = offset;
}
void Step::stand_in(int layer, LayerState& other) {
  impl_->stand_ins.resize(impl_->layers.size());
  impl_->stand_ins.at(static_cast<std::size_t>(layer)) = &other;
}
std::vector<mx::array> Step::pending(int layer) const {
  std::vector<mx::array> arrays;
  impl_->layers.at(static_cast<std::size_t>(layer))->pending(arrays);
  return arrays;
}
void Step::accept(int layer, const std::vector<mx::array>& outputs) {
  impl_->layers.at(static_cast<std::size_t>(layer))->accept(outputs);
}

}  // namespace godwit::cache
