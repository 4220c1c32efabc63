#include <algorithm>
#include <utility>

#include "base/error.h"
#include "cache/chunks.h"
#include "cache/state_store_impl.h"
#include "cache/step_impl.h"

namespace godwit::cache {
namespace {

// A read sees whole windows. A row that was cut may have less of them than its next token needs.
void check_window(const Row::Impl& row) {
  for (std::size_t g = 0; g < row.tables.size(); ++g) {
    const int window = row.choices->groups[g].window(), first = row.tables[g].first_position();
    if (window > 0 && first > std::max(0, row.length - window))
      fail(ErrorCode::invalid_argument, "state",
           "a read of the newest {} tokens of a row that was cut to {}: those before {} are gone", window,
           row.length, first);
  }
}

void check_span(const StoreChoices& choices, const RowSpan& span, bool reads_only) {
  if (span.tokens < 1) fail(ErrorCode::invalid_argument, "state", "a span of {} tokens", span.tokens);
  const Row::Impl& row = span.row->impl();
  GODWIT_CHECK(row.choices.get() == &choices, "a row of another state store");
  GODWIT_CHECK(!row.in_step, "a row planned into two Steps at once");
  for (const Together& group : span.together)
    if (group.begin < 0 || group.begin >= group.end || group.end > span.tokens)
      fail(ErrorCode::invalid_argument, "state", "tokens [{}, {}) that see each other, in a span of {}", group.begin,
           group.end, span.tokens);
  if (reads_only) return check_window(row);
  const int longest = span.row->longest_span(span.kind);
  if (span.tokens > longest)
    fail(ErrorCode::invalid_argument, "state",
         "a span of {} tokens at {} crosses the point where the row is encoded ({} tokens fit before it)", span.tokens,
         row.length, longest);
}

void check_spans(const StoreChoices& choices, std::span<const RowSpan> spans, bool reads_only) {
  if (spans.size() != 1 && (spans.empty() || !choices.is_native()))
    fail(ErrorCode::unsupported, "state", "reference mode runs one row at a time, {} were planned together",
         spans.size());
  for (std::size_t i = 0; i < spans.size(); ++i) {
    check_span(choices, spans[i], reads_only);
    for (std::size_t j = 0; j < i; ++j)
      GODWIT_CHECK(spans[j].row != spans[i].row, "a row planned twice in one Step");
  }
}

// Blocks that a group of a row of `length` tokens may hold at once.
std::size_t blocks_held(const LayerGroup& group, int length, NumericMode mode) {
  int positions = length;
  if (const int window = group.window(); window > 0)
    positions = std::min(length, window + (mode == NumericMode::native ? kNativeChunk : kReferenceChunk));
  return blocks_for(positions) + 1;
}

std::size_t layer_bytes(const StoreChoices& choices, int layer, bool encoded) {
  const KvPolicy& policy = choices.policy();
  return token_bytes(choices.needs()[static_cast<std::size_t>(layer)], encoded ? policy.codec_of(layer) : Codec{},
                     policy.dense, choices.signature.mode);
}

// What does not grow with the row.
std::size_t fixed_bytes(const LayerNeed& need) {
  if (need.content != Content::recurrent) return 0;
  const RecurrentNeed& r = need.recurrent;
  return 4 * static_cast<std::size_t>(r.value_heads) * static_cast<std::size_t>(r.value_dim * r.key_dim) +
         4 * static_cast<std::size_t>(r.kernel - 1) * static_cast<std::size_t>(r.channels);
}

}  // namespace

StateStore::StateStore(StateNeeds needs, KvPolicy policy, NumericMode mode, ops::NativeRuntime* runtime)
    : impl_(std::make_unique<Impl>(
          Impl{.choices = std::make_shared<const StoreChoices>(std::move(needs), std::move(policy), mode, runtime)})) {}

StateStore::~StateStore() = default;

Row StateStore::create() const { return Row(std::make_unique<Row::Impl>(impl_->choices)); }

Step StateStore::Impl::begin(std::span<const RowSpan> spans, bool reads_only) const {
  check_spans(*choices, spans, reads_only);
  Step::Owner impl(shelf->spare ? shelf->spare.release() : std::make_unique<Step::Impl>(*choices).release());
  impl->shelf = shelf;
  impl->begin(spans, reads_only);
  return Step(std::move(impl));
}

Step StateStore::plan(std::span<const RowSpan> spans) const { return impl_->begin(spans, /*reads_only=*/false); }
Step StateStore::read(std::span<const RowSpan> spans) const { return impl_->begin(spans, /*reads_only=*/true); }

const StateNeeds& StateStore::needs() const { return impl_->choices->needs(); }
const KvPolicy& StateStore::policy() const { return impl_->choices->policy(); }
const KvSignature& StateStore::signature() const { return impl_->choices->signature; }
std::size_t StateStore::resident_bytes() const { return impl_->choices->pool->resident_bytes(); }

std::size_t StateStore::bytes_per_token() const {
  std::size_t total = 0;
  for (int layer = 0; layer < static_cast<int>(needs().size()); ++layer)
    total += layer_bytes(*impl_->choices, layer, /*encoded=*/true);
  return total;
}

std::size_t StateStore::projected_bytes(int length) const {
  const StoreChoices& choices = *impl_->choices;
  // While it turns, a row holds both forms of what lies before its start.
  const int dense_length = choices.is_native() ? std::min(length, choices.policy().start) : length;
  std::size_t total = 0;
  for (const LayerNeed& need : needs()) total += fixed_bytes(need);
  for (const LayerGroup& group : choices.groups)
    for (const int layer : group.layers) {
      const auto held = [&](int tokens, bool encoded) {
        return blocks_held(group, tokens, choices.signature.mode) * kPositions * layer_bytes(choices, layer, encoded);
      };
      total += held(length, /*encoded=*/true);
      if (group.is_encodable() && dense_length > 0) total += held(dense_length, /*encoded=*/false);
    }
  return total;
}

}  // namespace godwit::cache
