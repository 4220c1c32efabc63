#include <utility>

#include "base/error.h"
#include "cache/conversion.h"
#include "cache/row_impl.h"

namespace godwit::cache {
namespace {

// Ends the round with the row at `length`. What can fail comes first.
void resolve(Round::Impl& round, int keep) {
  Row::Impl& row = *round.row;
  GODWIT_CHECK(!row.in_step, "a round ended inside an unpublished Step");
  const int appended = row.length - round.start;
  if (keep < 0 || keep > appended)
    fail(ErrorCode::invalid_argument, "round", "{} tokens to keep of {}", keep, appended);
  std::vector<RecurrentRef> memories;
  for (std::size_t i = 0; i < row.recurrent.size(); ++i) {
    const RecurrentState& state = row.recurrent[i];
    const auto layer = static_cast<std::size_t>(row.choices->recurrent[i]);
    memories.push_back(keep == appended ? state.memory()
                                        : state.replayed(row.choices->needs()[layer].recurrent, keep,
                                                         row.choices->runtime));
  }
  for (std::size_t i = 0; i < memories.size(); ++i) row.recurrent[i].resolve(std::move(memories[i]));
  if (keep < appended) {
    // As if only the kept tokens had been appended, in one block.
    row.rings = std::move(round.rings);
    for (std::optional<RingShadow>& ring : row.rings)
      if (ring && keep > 0) ring->append(keep);
    row.length = round.start + keep;
  }
  row.round = nullptr;
  row.trim();
}

}  // namespace

Round::Round(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Round::Round(Round&& other) noexcept = default;

Round::~Round() {
  if (!impl_ || impl_->row == nullptr) return;
  try {
    resolve(*impl_, 0);
  } catch (...) {  // a replay of no tokens computes nothing, so this is a round inside a Step: that Step's end trims
    for (RecurrentState& state : impl_->row->recurrent) state.resolve(state.memory());
    impl_->row->round = nullptr;
  }
}

void Round::commit() {
  GODWIT_CHECK(impl_ && impl_->row, "a round resolved twice, or its row is gone");
  resolve(*impl_, impl_->row->length - impl_->start);
  impl_.reset();
}

void Round::rollback(int keep) {
  GODWIT_CHECK(impl_ && impl_->row, "a round resolved twice, or its row is gone");
  resolve(*impl_, keep);
  impl_.reset();
}

Round Row::begin() {
  impl_->check_idle("begin");
  maintain(*impl_);  // plan() does not turn a row inside a round
  auto round = std::make_unique<Round::Impl>(Round::Impl{impl_.get(), impl_->length, impl_->rings});
  for (RecurrentState& state : impl_->recurrent) state.begin();
  impl_->round = round.get();
  return Round(std::move(round));
}

}  // namespace godwit::cache
