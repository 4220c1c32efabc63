#include <algorithm>
#include <utility>

#include "base/error.h"
#include "cache/step_impl.h"

namespace godwit::cache {
namespace {

constexpr int kGrowth = 256;         // buffers grow by whole steps
constexpr int kPrefillChunk = 2048;  // a block leaves a sliding buffer of window - 1 + block columns

void check_needs(const StateNeeds& needs) {
  for (std::size_t i = 0; i < needs.size(); ++i) {
    const LayerNeed& need = needs[i];
    const bool sizes = need.kv_heads > 0 && need.key_dim > 0 && need.value_dim > 0 && need.element_bytes > 0;
    const bool window = need.window == WindowKind::full || need.window_size > 0;
    if (!sizes || !window)
      fail(ErrorCode::invalid_argument, "state", "layer {}: kv heads {}, key {}, value {}, window {}", i,
           need.kv_heads, need.key_dim, need.value_dim, need.window_size);
  }
}

// What the blocks of `native` mode cannot hold.
void check_native_needs(const StateNeeds& needs) {
  for (std::size_t i = 0; i < needs.size(); ++i) {
    const LayerNeed& need = needs[i];
    if (need.key_dim != need.value_dim || need.key_dim % 16 != 0 || need.key_dim > kernels::kMaxHeadDim)
      fail(ErrorCode::unsupported, "state",
           "layer {}: native attention takes heads of one size, a multiple of 16 up to {}: keys have {}, "
           "values {}",
           i, kernels::kMaxHeadDim, need.key_dim, need.value_dim);
  }
}

std::size_t column_bytes(const LayerNeed& need, const StoreChoices& choices) {
  const DenseType dense = choices.policy.dense;
  const int element = dense == DenseType::f32     ? 4
                      : dense != DenseType::model ? 2
                      : choices.is_native()       ? 4
                                                  : need.element_bytes;
  return static_cast<std::size_t>(need.kv_heads) * static_cast<std::size_t>(need.key_dim + need.value_dim) *
         static_cast<std::size_t>(element);
}

}  // namespace

struct StateStore::Impl {
  std::shared_ptr<const StoreChoices> choices;
};

StateStore::StateStore(StateNeeds needs, KvPolicy policy, NumericMode mode) {
  check_needs(needs);
  if (mode == NumericMode::native) check_native_needs(needs);
  auto choices = std::make_shared<StoreChoices>(StoreChoices{std::move(needs), policy, mode});
  impl_ = std::make_unique<Impl>(Impl{std::move(choices)});
}

StateStore::~StateStore() = default;

Row StateStore::create() const { return Row(std::make_unique<Row::Impl>(impl_->choices)); }

Step StateStore::plan(std::span<const RowSpan> spans) const {
  const bool takes_many = impl_->choices->is_native() && !spans.empty();
  if (spans.size() != 1 && !takes_many)
    fail(ErrorCode::unsupported, "state", "reference mode runs one row at a time, {} were planned together",
         spans.size());
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (spans[i].tokens < 1)
      fail(ErrorCode::invalid_argument, "state", "a span of {} tokens", spans[i].tokens);
    const Row::Impl& row = spans[i].row->impl();
    GODWIT_CHECK(row.choices == impl_->choices, "a row of another state store");
    GODWIT_CHECK(!row.in_step, "a row planned into two Steps at once");
    for (std::size_t j = 0; j < i; ++j)
      GODWIT_CHECK(spans[j].row != spans[i].row, "a row planned twice in one Step");
  }
  return Step(std::make_unique<Step::Impl>(*impl_->choices, spans));
}

const StateNeeds& StateStore::needs() const { return impl_->choices->needs; }
const KvPolicy& StateStore::policy() const { return impl_->choices->policy; }

std::size_t StateStore::bytes_per_token() const {
  std::size_t total = 0;
  for (const LayerNeed& need : needs()) total += column_bytes(need, *impl_->choices);
  return total;
}

std::size_t StateStore::projected_bytes(int length) const {
  std::size_t total = 0;
  for (const LayerNeed& need : needs()) {
    int columns = length;
    if (need.window == WindowKind::sliding) columns = std::min(columns, need.window_size + kPrefillChunk);
    const int rounded = (columns + kGrowth - 1) / kGrowth * kGrowth + kGrowth;
    total += static_cast<std::size_t>(rounded) * column_bytes(need, *impl_->choices);
  }
  return total;
}

}  // namespace godwit::cache
