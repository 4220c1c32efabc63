#include <algorithm>
#include <utility>

#include "base/error.h"
#include "cache/row_impl.h"

namespace godwit::cache {
namespace {

// A query at position p sees [p - window + 1, p], so a sliding layer can go on from any p whose history it holds.
int minimum_length(const Row::Impl& row, std::size_t group) {
  const int first = row.first_kept(group);
  return first == 0 ? 0 : first + row.choices->groups[group].window() - 1;
}

void check_cut(const Row& row, int length, const char* action) {
  const Row::Impl& impl = row.impl();
  impl.check_idle(action);
  if (length < 0 || length > impl.length)
    fail(ErrorCode::invalid_argument, "row", "cannot {} to {} tokens a row of {}", action, length, impl.length);
  const int minimum = row.minimum_reusable_length();
  if (length < minimum)
    fail(ErrorCode::invalid_argument, "row",
         "cannot {} to {} tokens a row of {}: what it held before {} is no longer there as it was", action, length,
         impl.length, minimum);
}

}  // namespace

Row::Impl::Impl(std::shared_ptr<const StoreChoices> shared)
    : choices(std::move(shared)),
      tables(choices->groups.size()),
      rings(choices->groups.size()),
      recurrent(choices->recurrent.size()),
      cross(choices->cross.size()),
      encoded(starts_encoded(*choices)) {
  if (choices->is_native()) return;
  for (std::size_t g = 0; g < rings.size(); ++g)
    if (const int window = choices->groups[g].window(); window > 0) rings[g].emplace(window);
}

// With start 0 `native` encodes from the first token; `reference` attends the first chunk densely.
bool Row::Impl::starts_encoded(const StoreChoices& choices) {
  return choices.is_native() && choices.is_encodable && choices.policy().start == 0;
}

Row::Impl::~Impl() {
  if (round) round->row = nullptr;
}

Row::Impl::Impl(const Impl& other)
    : choices(other.choices),
      tables(other.tables),
      rings(other.rings),
      recurrent(other.recurrent),
      cross(other.cross),
      length(other.length),
      encoded(other.encoded),
      encoded_at(other.encoded_at) {}

int Row::Impl::first_kept(std::size_t group) const {
  // The oracle's ring holds these columns and no others; one that was cut may name some that are gone.
  const int first = tables[group].first_position();
  return rings[group] ? std::max(first, length - rings[group]->columns()) : first;
}

void Row::Impl::trim() noexcept {
  for (std::size_t g = 0; g < tables.size(); ++g) {
    const int oldest = round ? round->start : length;
    const int window = choices->groups[g].window();
    // A read sees the whole window before the next token.
    int first = window > 0 ? std::max(0, oldest - window) : 0;
    if (rings[g]) first = std::min(first, length - rings[g]->columns());
    if (rings[g] && round) first = std::min(first, oldest - round->rings[g]->columns());
    tables[g].keep(first, length);
  }
}

void Row::Impl::check_idle(const char* action) const {
  GODWIT_CHECK(!in_step, "{} of a row inside an unpublished Step", action);
  GODWIT_CHECK(round == nullptr, "{} of a row inside an open round", action);
}

Row::Row(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Row::Row(Row&&) noexcept = default;
Row& Row::operator=(Row&&) noexcept = default;
Row::~Row() = default;

int Row::position() const { return impl_->length; }
const KvSignature& Row::signature() const { return impl_->choices->signature; }

Row Row::fork(int prefix) const {
  check_cut(*this, prefix, "fork");
  Row copy(std::make_unique<Impl>(*impl_));
  copy.truncate(prefix);
  return copy;
}

void Row::truncate(int length) {
  check_cut(*this, length, "truncate");
  for (std::optional<RingShadow>& ring : impl_->rings)
    if (ring) ring->truncate(impl_->length - length);
  impl_->length = length;
  if (length == 0) {
    impl_->encoded = Impl::starts_encoded(*impl_->choices);
    impl_->encoded_at = 0;
  }
  impl_->trim();
}

int Row::minimum_reusable_length() const {
  int minimum = impl_->encoded ? impl_->encoded_at : 0;
  for (std::size_t g = 0; g < impl_->tables.size(); ++g) minimum = std::max(minimum, minimum_length(*impl_, g));
  // A recurrent state has no token axis to cut.
  if (!impl_->recurrent.empty()) minimum = impl_->length;
  return std::min(minimum, impl_->length);
}

int Row::longest_span(SpanKind kind) const {
  const StoreChoices& choices = *impl_->choices;
  const int start = choices.policy().start;
  const bool may_cross = !choices.is_encodable || impl_->encoded || start == 0 ||
                         (!choices.is_native() && kind == SpanKind::causal);
  if (may_cross) return INT_MAX;
  if (impl_->length < start) return start - impl_->length;
  return impl_->round ? 0 : INT_MAX;  // the next plan() encodes the row, but never inside a round
}

std::size_t Row::bytes() const {
  std::size_t total = 0;
  for (const BlockTable& table : impl_->tables) total += table.bytes();
  for (const RecurrentState& state : impl_->recurrent) total += state.bytes();
  for (const CrossMemory& memory : impl_->cross) total += memory ? memory->bytes() : 0;
  return total;
}

}  // namespace godwit::cache
