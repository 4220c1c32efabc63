#include <numeric>

#include "base/error.h"
#include "cache/dense_layer_state.h"
#include "cache/native_layer_state.h"
#include "cache/step_impl.h"

namespace godwit::cache {
namespace {

// Room for every row and layer, or for none.
void make_room(std::span<const RowSpan> spans) {
  try {
    for (const RowSpan& span : spans) {
      Row::Impl& row = span.row->impl();
      for (BlockTable& table : row.tables) table.make_room(row.length, row.length + span.tokens);
    }
  } catch (...) {
    for (const RowSpan& span : spans) span.row->impl().trim();
    throw;
  }
}

}  // namespace

Step::Impl::Impl(const StoreChoices& choices, std::span<const RowSpan> spans) : mode(choices.mode) {
  for (const RowSpan& span : spans) {
    rows.push_back(&span.row->impl());
    offsets.push_back(rows.back()->length);
    tokens.push_back(span.tokens);
  }
  token_count = std::accumulate(tokens.begin(), tokens.end(), 0);
  make_room(spans);
  layers.reserve(choices.needs.size());
  if (choices.is_native()) {
    add_native_layers(choices);
  } else {
    for (std::size_t i = 0; i < choices.needs.size(); ++i)
      layers.push_back(std::make_unique<DenseLayerState>(rows[0]->layers[i], choices.needs[i], choices.policy,
                                                         offsets[0], tokens[0]));
  }
  for (Row::Impl* row : rows) row->in_step = true;
}

void Step::Impl::add_native_layers(const StoreChoices& choices) {
  for (std::size_t i = 0; i < choices.needs.size(); ++i) {
    auto layer = std::make_unique<NativeLayerState>(choices.needs[i], choices.policy);
    for (std::size_t r = 0; r < rows.size(); ++r) layer->add(rows[r]->tables[i], offsets[r], tokens[r]);
    layers.push_back(std::move(layer));
  }
}

Step::Impl::~Impl() {
  if (rows.empty()) return;
  for (const auto& layer : layers) layer->abandon();
  for (Row::Impl* row : rows) {
    row->trim();
    row->in_step = false;
  }
}

Step::Step(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Step::Step(Step&&) noexcept = default;
Step& Step::operator=(Step&&) noexcept = default;
Step::~Step() = default;

NumericMode Step::mode() const { return impl_->mode; }
int Step::token_count() const { return impl_->token_count; }
std::span<const int> Step::row_offsets() const { return impl_->offsets; }
std::span<const int> Step::row_tokens() const { return impl_->tokens; }

LayerState& Step::layer(int index) {
  GODWIT_CHECK(!impl_->rows.empty(), "a published Step");
  GODWIT_CHECK(index >= 0 && index < static_cast<int>(impl_->layers.size()), "layer {}", index);
  return *impl_->layers[static_cast<std::size_t>(index)];
}

std::vector<mx::array> Step::pending() const {
  std::vector<mx::array> arrays;
  for (const Row::Impl* row : impl_->rows)
    for (const LayerMemory& layer : row->layers)
      if (!layer.planes.empty())
        for (mx::array& plane : layer.planes.arrays()) arrays.push_back(std::move(plane));
  return arrays;
}

void Step::publish() {
  GODWIT_CHECK(!impl_->rows.empty(), "a Step published twice");
  for (std::size_t i = 0; i < impl_->layers.size(); ++i) {
    GODWIT_CHECK(impl_->layers[i]->stored(), "layer {} stored nothing in this Step", i);
    GODWIT_CHECK(impl_->layers[i]->evaluated(), "publish() before the eval of layer {}", i);
  }
  for (const auto& layer : impl_->layers) layer->publish();
  for (std::size_t r = 0; r < impl_->rows.size(); ++r) {
    Row::Impl& row = *impl_->rows[r];
    row.length += impl_->tokens[r];
    row.trim();
    row.in_step = false;
  }
  impl_->rows.clear();
}

}  // namespace godwit::cache
