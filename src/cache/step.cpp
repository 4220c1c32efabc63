#include "base/error.h"
#include "cache/step_impl.h"

namespace godwit::cache {

Step::Impl::Impl(Row::Impl& planned, int span) : row(&planned), offset(planned.length), tokens(span) {
  const StoreChoices& choices = *planned.choices;
  layers.reserve(planned.layers.size());
  for (std::size_t i = 0; i < planned.layers.size(); ++i)
    layers.emplace_back(planned.layers[i], choices.needs[i], choices.policy, offset, tokens);
  planned.in_step = true;
}

Step::Impl::~Impl() {
  if (row == nullptr) return;
  for (DenseLayerState& layer : layers) layer.abandon();
  row->in_step = false;
}

Step::Step(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Step::Step(Step&&) noexcept = default;
Step& Step::operator=(Step&&) noexcept = default;
Step::~Step() = default;

NumericMode Step::mode() const { return impl_->mode; }
int Step::token_count() const { return impl_->tokens; }
std::span<const int> Step::row_offsets() const { return {&impl_->offset, 1}; }
std::span<const int> Step::row_tokens() const { return {&impl_->tokens, 1}; }

LayerState& Step::layer(int index) {
  GODWIT_CHECK(impl_->row != nullptr, "a published Step");
  GODWIT_CHECK(index >= 0 && index < static_cast<int>(impl_->layers.size()), "layer {}", index);
  return impl_->layers[static_cast<std::size_t>(index)];
}

std::vector<mx::array> Step::pending() const {
  std::vector<mx::array> arrays;
  if (impl_->row == nullptr) return arrays;
  for (const LayerMemory& layer : impl_->row->layers)
    if (!layer.planes.empty())
      for (mx::array& plane : layer.planes.arrays()) arrays.push_back(std::move(plane));
  return arrays;
}

void Step::publish() {
  GODWIT_CHECK(impl_->row != nullptr, "a Step published twice");
  Row::Impl& row = *impl_->row;
  for (std::size_t i = 0; i < impl_->layers.size(); ++i) {
    GODWIT_CHECK(impl_->layers[i].stored(), "layer {} stored nothing in this Step", i);
    GODWIT_CHECK(row.layers[i].planes.evaluated(), "publish() before the eval of layer {}", i);
  }
  for (DenseLayerState& layer : impl_->layers) layer.publish();
  row.length += impl_->tokens;
  row.in_step = false;
  impl_->row = nullptr;
}

}  // namespace godwit::cache
