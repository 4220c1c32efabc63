#include <algorithm>
#include <utility>

#include "base/error.h"
#include "cache/row_impl.h"

namespace godwit::cache {
namespace {

// A query at position p sees [p - window + 1, p], so a sliding layer can go on from any p whose history it
// holds.
int minimum_length(const Row::Impl& row, std::size_t layer) {
  const int first = row.first_kept(layer);
  return first == 0 ? 0 : first + row.choices->needs[layer].window_size - 1;
}

void check_cut(const Row& row, int length, const char* action) {
  const Row::Impl& impl = row.impl();
  GODWIT_CHECK(!impl.in_step, "{} of a row inside an unpublished Step", action);
  if (length < 0 || length > impl.length)
    fail(ErrorCode::invalid_argument, "row", "cannot {} to {} tokens a row of {}", action, length,
         impl.length);
  const int minimum = row.minimum_reusable_length();
  if (length < minimum)
    fail(ErrorCode::invalid_argument, "row",
         "cannot {} to {} tokens a row of {}: a sliding window has dropped what lies before {}", action,
         length, impl.length, minimum);
}

std::string layer_signature(const LayerNeed& need) {
  const std::string window =
      need.window == WindowKind::full ? "full" : fmt::format("sliding{{{}}}", need.window_size);
  return fmt::format("{}({}x{},{})", window, need.kv_heads, need.key_dim, need.value_dim);
}

}  // namespace

Row::Impl::Impl(std::shared_ptr<const StoreChoices> shared) : choices(std::move(shared)) {
  for (const LayerNeed& need : choices->needs) {
    if (choices->is_native()) {
      tables.emplace_back(need, native_type(choices->policy));
      continue;
    }
    LayerMemory& layer = layers.emplace_back();
    if (need.window == WindowKind::sliding) layer.ring.emplace(need.window_size);
  }
}

int Row::Impl::first_kept(std::size_t layer) const {
  return choices->is_native() ? tables[layer].first_position() : layers[layer].first_kept;
}

void Row::Impl::trim() noexcept {
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const LayerNeed& need = choices->needs[i];
    const int seen = need.window == WindowKind::sliding ? std::max(0, length + 1 - need.window_size) : 0;
    tables[i].keep(seen, length);
  }
}

Row::Row(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Row::Row(Row&&) noexcept = default;
Row& Row::operator=(Row&&) noexcept = default;
Row::~Row() = default;

int Row::position() const { return impl_->length; }

Row Row::fork(int prefix) const {
  check_cut(*this, prefix, "fork");
  Row copy(std::make_unique<Impl>(*impl_));
  copy.truncate(prefix);
  return copy;
}

void Row::truncate(int length) {
  check_cut(*this, length, "truncate");
  for (LayerMemory& layer : impl_->layers)
    if (layer.ring) layer.ring->truncate(impl_->length - length);
  impl_->length = length;
  impl_->trim();
}

int Row::minimum_reusable_length() const {
  int minimum = 0;
  for (std::size_t i = 0; i < impl_->choices->needs.size(); ++i)
    minimum = std::max(minimum, minimum_length(*impl_, i));
  return minimum;
}

std::size_t Row::bytes() const {
  std::size_t total = 0;
  for (const LayerMemory& layer : impl_->layers) total += layer.planes.bytes();
  for (const BlockTable& table : impl_->tables) total += table.bytes();
  return total;
}

// Mode, policy and the layers with runs counted: "reference dense 5*sliding{512}(1x256,256) full(1x256,256)".
std::string Row::signature() const {
  const StoreChoices& choices = *impl_->choices;
  std::string text = choices.is_native() ? "native " : "reference ";
  text += to_string(choices.policy);
  for (std::size_t i = 0; i < choices.needs.size();) {
    const std::string layer = layer_signature(choices.needs[i]);
    std::size_t end = i + 1;
    while (end < choices.needs.size() && layer_signature(choices.needs[end]) == layer) ++end;
    text += fmt::format(" {}*{}", end - i, layer);
    i = end;
  }
  return text;
}

}  // namespace godwit::cache
