#include <numeric>

#include "base/error.h"
#include "cache/conversion.h"
#include "cache/cross_layer.h"
#include "cache/native_layer.h"
#include "cache/native_recurrent.h"
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

Step::Impl::Impl(const StoreChoices& shared)
    : choices(shared),
      kv(shared.is_native() ? shared.places.size() : 0),
      delta(kv.size()),
      layers(shared.places.size()) {
  for (std::size_t i = 0; i < layers.size(); ++i)
    if (is_kept(choices.places[i])) layers[i] = std::make_unique<NativeLayer>(choices, static_cast<int>(i), kv[i]);
}

// Layers that the next Step takes over; the others hold what belongs to one Step.
bool Step::Impl::is_kept(const LayerPlace& place) const {
  return choices.is_native() && place.content != Content::recurrent && place.content != Content::cross;
}

void Step::Impl::begin(std::span<const RowSpan> planned, bool only) {
  reads_only = only;
  spans.assign(planned.begin(), planned.end());
  offsets.clear();
  tokens.clear();
  if (!reads_only) {
    for (const RowSpan& span : spans) maintain(span.row->impl());
    if (choices.is_native()) make_room(choices, spans);
  }
  for (const RowSpan& span : planned) {
    offsets.push_back(span.row->impl().length);
    tokens.push_back(span.tokens);
    rows.push_back(&span.row->impl());
    rows.back()->in_step = true;
  }
  token_count = std::accumulate(tokens.begin(), tokens.end(), 0);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (is_kept(choices.places[i]))
      static_cast<NativeLayer&>(*layers[i]).begin(rows, spans, reads_only);
    else
      layers[i] = make_layer(i);
  }
}

std::unique_ptr<StepLayer> Step::Impl::make_layer(std::size_t index) {
  const LayerPlace place = choices.places[index];
  if (place.content == Content::recurrent && choices.is_native())
    return std::make_unique<NativeRecurrent>(choices, static_cast<int>(index), delta[index], rows, spans);
  if (place.content == Content::recurrent) return std::make_unique<RecurrentLayer>(choices, *rows[0], place, spans[0]);
  if (place.content == Content::cross) return std::make_unique<CrossLayer>(choices, place, rows, spans);
  return std::make_unique<ReferenceLayer>(*rows[0], place, spans[0], reads_only);
}

void Step::Impl::end() noexcept {
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (!layers[i]) continue;
    if (!rows.empty()) layers[i]->abandon();
    if (!is_kept(choices.places[i])) layers[i].reset();
  }
  for (std::size_t r = 0; r < rows.size(); ++r) {
    Row::Impl& row = *rows[r];
    if (!reads_only && choices.is_native()) {
      for (BlockTable& table : row.tables) table.give_up(row.length, row.length + tokens[r]);
      row.trim();
    }
    row.in_step = false;
  }
  rows.clear();
  bound_offset.reset();
  stand_ins.clear();
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

void Step::PutAway::operator()(Impl* impl) const noexcept {
  std::unique_ptr<Impl> over(impl);
  over->end();
  if (const std::shared_ptr<StepShelf> shelf = std::move(over->shelf)) shelf->spare = std::move(over);
}

Step::Step(Owner impl) : impl_(std::move(impl)) {}
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

ops::StepLayers Step::native_layers() {
  GODWIT_CHECK(!impl_->rows.empty() && impl_->choices.is_native(), "a published Step, or one of reference mode");
  return {impl_->kv, impl_->delta};
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
