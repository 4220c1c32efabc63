#include "decode/prefix_sharing.h"

#include <algorithm>
#include <utility>

namespace godwit::decode {

int PrefixSharing::common(const ActiveRow& row, const ActiveRow& other) const {
  if (&row == &other || &row.home() != &other.home()) return 0;
  if (row.job().request.cache_salt != other.job().request.cache_salt) return 0;
  const std::vector<int>& prompt = row.job().request.prompt;
  // The bits of `reference` are those of a chunk plan, which is the prompt's: nothing but the same prompt has it.
  if (!is_native_) return prompt == other.job().request.prompt ? static_cast<int>(prompt.size()) - 1 : 0;
  const std::span<const int> mine = row.tokens(), theirs = other.tokens();
  const auto end = std::ranges::mismatch(mine.first(mine.size() - 1), theirs).in1;
  return static_cast<int>(end - mine.begin());
}

int PrefixSharing::available(const ActiveRow& other, int wanted) const {
  const int prefix = std::min(wanted, other.position());
  if (!is_native_ && other.position() > wanted) return 0;  // it has gone on by steps of an answer
  return prefix >= other.runner().row().minimum_reusable_length() ? prefix : 0;
}

ActiveRow* PrefixSharing::leader_of(const ActiveRow& row, const Rows& rows) const {
  ActiveRow* best = nullptr;
  int most = 0;
  for (const auto& other : rows) {
    if (!other->is_begun || other->leader || other->is_decoding() || other->job().request.priority > row.job().request.priority) continue;
    const int shared = common(row, *other);
    if (shared <= other->position() || shared <= row.position() || shared - other->started_at < kWorthWaiting) continue;
    if (shared > most) best = other.get();
    most = std::max(most, shared);
  }
  return best;
}

void PrefixSharing::begin(ActiveRow& row, const Rows& rows) const {
  row.leader = leader_of(row, rows);
  row.is_begun = true;
  if (row.leader)
    row.shared = common(row, *row.leader);
  else
    find(row, rows);
}

void PrefixSharing::find(ActiveRow& row, const Rows& rows) const {
  if (row.home().cache) {
    // Behind the prompt the plan of `reference` is that of an answer, of which nothing is kept.
    const std::span<const int> wanted = is_native_ ? row.tokens() : std::span<const int>(row.job().request.prompt);
    std::optional<cache::Row> found = row.home().cache->find(wanted, row.job().request.cache_salt);
    if (found && found->position() > row.position()) row.start_from(std::move(*found));
  }
  for (const auto& other : rows) {
    const int prefix = available(*other, common(row, *other));
    if (prefix > row.position()) row.start_from(other->runner().row().fork(prefix));
  }
}

void PrefixSharing::hand_over(const Rows& rows) const {
  for (const auto& row : rows) {
    if (!row->leader || row->leader->position() < row->shared) continue;
    const ActiveRow& leader = *std::exchange(row->leader, nullptr);
    if (available(leader, row->shared) > row->position())
      row->start_from(leader.runner().row().fork(row->shared));
    else
      find(*row, rows);
  }
}

void PrefixSharing::leave(const ActiveRow& leaving, const Rows& rows) const {
  for (const auto& row : rows) {
    if (row->leader != &leaving) continue;
    row->leader = nullptr;
    row->is_begun = false;
    const int prefix = available(leaving, row->shared);
    if (prefix > row->position()) row->start_from(leaving.runner().row().fork(prefix));
  }
}

std::optional<int> PrefixSharing::stop_of(const ActiveRow& row, const Rows& rows) const {
  std::optional<int> stop;
  for (const auto& follower : rows)
    if (follower->leader == &row && (!stop || follower->shared < *stop)) stop = follower->shared;
  return stop;
}

}  // namespace godwit::decode
