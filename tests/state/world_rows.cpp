// Operations on rows that compute nothing, and what must hold of every row.
#include <algorithm>

#include "base/mx_ops.h"
#include "cache/row_impl.h"
#include "cache/state_store_impl.h"
#include "state/world.h"

namespace godwit::cache::state_test {

// Whether the row must let itself be cut there. Windows may still hold more than they must.
bool World::may_cut(const ModelRow& row, int length) const {
  return length >= row.row.minimum_reusable_length();
}

void World::cut(ModelRow& row, int length) {
  if (length == row.length()) return;
  row.tokens.resize(static_cast<std::size_t>(length));
  row.is_whole = length == 0;
  // A ring's columns may stand in another order now; without one, only where the chunks end matters.
  if (setup_.longest_window() > 0) row.is_exact = length == 0;
  while (!row.plan.empty()) {
    int before = 0;
    for (const Chunk& chunk : row.plan) before += chunk.tokens;
    before -= row.plan.back().tokens;
    if (before < length) {
      row.plan.back().tokens = length - before;
      std::erase_if(row.plan.back().together, [&](const Together& t) { return t.end > length - before; });
      break;
    }
    row.plan.pop_back();
  }
  if (length == 0) {
    row.encoded = setup_.mode == NumericMode::native && setup_.is_encodable() && setup_.policy.start == 0;
    row.encoded_at = 0;
  }
}

bool World::fork(int r, int prefix, int stream) {
  ModelRow& from = row(r);
  if (from.round) {
    demand_error(ErrorCode::internal, "a fork inside a round",
                 [&] { static_cast<void>(from.row.fork(prefix)); });
    return false;
  }
  if (prefix > from.length() || !may_cut(from, prefix)) {
    demand_error(ErrorCode::invalid_argument, "a fork where nothing is left",
                 [&] { static_cast<void>(from.row.fork(prefix)); });
    return false;
  }
  ModelRow made{.row = from.row.fork(prefix),
                .tokens = from.tokens,
                .stream = stream,
                .encoded = from.encoded,
                .encoded_at = from.encoded_at,
                .is_whole = from.is_whole,
                .plan = from.plan,
                .is_exact = from.is_exact};
  cut(made, prefix);
  rows_.push_back(std::move(made));
  return true;
}

bool World::truncate(int r, int length) {
  ModelRow& of = row(r);
  const bool is_legal = length <= of.length() && may_cut(of, length);
  if (of.round || !is_legal) {
    demand_error(of.round ? ErrorCode::internal : ErrorCode::invalid_argument, "a cut that cannot be",
                 [&] { of.row.truncate(length); });
    return false;
  }
  of.row.truncate(length);
  cut(of, length);
  return true;
}

void World::begin(int r) {
  ModelRow& of = row(r);
  if (of.round)
    return demand_error(ErrorCode::internal, "a round in a round",
                        [&] { static_cast<void>(of.row.begin()); });
  maintain(of);
  of.round = std::make_unique<Round>(of.row.begin());
  of.round_start = of.length();
  of.round_number = ++rounds_;
  of.plan_at_begin = of.plan;
  of.is_whole_at_begin = of.is_whole;
}

void World::commit(int r) {
  ModelRow& of = row(r);
  if (!of.round) return;
  of.round->commit();
  demand_error(ErrorCode::internal, "a round that ends twice", [&] { of.round->commit(); });
  of.round.reset();
}

void World::rollback(int r, int keep) {
  ModelRow& of = row(r);
  if (!of.round) return;
  const int appended = of.length() - of.round_start;
  if (keep < 0 || keep > appended)
    return demand_error(ErrorCode::invalid_argument, "keeping what is not there",
                        [&] { of.round->rollback(keep); });
  of.round->rollback(keep);
  of.round.reset();
  of.tokens.resize(static_cast<std::size_t>(of.round_start + keep));
  if (keep == 0) of.is_whole = of.is_whole_at_begin;
  if (keep == appended) return;
  // As if the kept tokens had come in one block.
  of.plan = of.plan_at_begin;
  if (keep > 0) of.plan.push_back({keep, SpanKind::causal, {}, 0});
}

bool World::step_starved(const std::vector<Span>& spans, int count) {
  BlockPool& pool = *store_->impl().choices->pool;
  pool.fail_at(count);
  bool failed = false;
  try {
    step(spans);
  } catch (const std::bad_alloc&) {
    failed = true;
  }
  pool.fail_at(0);
  // Turning to the codec is a step of its own: it has happened as a whole or not at all.
  for (ModelRow& each : rows_) {
    demand(!each.row.impl().in_step, "a row that is still in a Step");
    each.encoded = each.row.impl().encoded;
    each.encoded_at = each.encoded ? each.row.impl().encoded_at : 0;
  }
  return failed;
}

void World::take_donor(int r) {
  ModelRow& from = row(r);
  if (from.round || from.length() == 0) return;
  donors_.push_back({.row = from.row.fork(from.length()),
                     .tokens = from.tokens,
                     .encoded = from.encoded,
                     .is_whole = from.is_whole});
}

void World::read_donors() {
  for (ModelRow& donor : donors_) read(donor, 2);
}

// `reference` promises the same bits for the same chunks only: they are part of the space, and so is the
// order of rounds.
std::string World::space_of(int r) {
  if (setup_.mode == NumericMode::native) return "";
  std::string plan;
  for (const Chunk& chunk : row(r).plan) {
    plan += fmt::format("{}/{}/{}", chunk.tokens, static_cast<int>(chunk.kind), chunk.round);
    for (const Together& t : chunk.together) plan += fmt::format("/{}-{}", t.begin, t.end);
    plan += ",";
  }
  return plan + (row(r).is_exact ? "" : fmt::format("{}", rounds_++));
}

void World::insert(int r) {
  ModelRow& from = row(r);
  if (from.round)
    return demand_error(ErrorCode::internal, "caching inside a round",
                        [&] { cache_->insert(from.row, from.tokens); });
  const std::string space = space_of(r);
  cache_->insert(from.row, from.tokens, space);
  if (from.length() == 0) return;
  std::vector<int> longer = from.tokens;
  longer.push_back(77);
  const ModelRow known{.row = store_->create(),
                       .tokens = from.tokens,
                       .encoded = from.encoded,
                       .encoded_at = from.encoded_at,
                       .is_whole = from.is_whole,
                       .plan = from.plan,
                       .is_exact = from.is_exact};
  const int found = find(std::move(longer), space);
  // A row that was cut may lack blocks that a hit would need: in the window of a read, or of the oracle's
  // ring.
  demand(found == known.length() || !known.is_whole, "{} of {} tokens are found that were just put there",
         found, known.length());
  if (found == 0) return;
  ModelRow& hit = rows_.back();
  if (found == known.length()) {
    hit.plan = known.plan;
    hit.is_exact = known.is_exact;
    hit.encoded_at = known.encoded_at;
    hit.is_whole = known.is_whole || setup_.mode == NumericMode::native;
  }
}

int World::find(std::vector<int> tokens, const std::string& space) {
  std::optional<Row> found = cache_->find(tokens, space);
  if (!found) return 0;
  const int length = found->position();
  demand(length < static_cast<int>(tokens.size()) && length > 0, "{} tokens found of {}", length,
         tokens.size());
  tokens.resize(static_cast<std::size_t>(length));
  const int start = setup_.policy.start;
  ModelRow hit{.row = std::move(*found), .tokens = std::move(tokens), .stream = length % 3};
  // At the start itself both forms can be gone on from, and only the row knows which it has.
  hit.encoded = hit.row.impl().encoded;
  hit.encoded_at = hit.row.impl().encoded_at;
  if (setup_.mode == NumericMode::native)
    demand(!setup_.is_encodable() ||
               (hit.encoded ? length >= start && hit.encoded_at == start : length <= start),
           "{} tokens found {}", length, hit.encoded ? "encoded" : "dense");
  else
    hit.is_exact = hit.is_whole = false;
  rows_.push_back(std::move(hit));
  return length;
}

void World::check_rows() {
  for (int r = 0; r < rows(); ++r) {
    ModelRow& of = row(r);
    demand(of.row.position() == of.length(), "a row stands at {}, not {}", of.row.position(), of.length());
    const int least = of.row.minimum_reusable_length();
    demand(least <= of.length(), "a row of {} cannot be gone on from", of.length());
    demand(least >= (of.encoded ? std::min(of.encoded_at, of.length()) : 0),
           "a row encoded at {} can be cut to {}", of.encoded_at, least);
    if (setup_.has_recurrent())
      demand(least == of.length(), "a recurrent state of {} cut to {}", of.length(), least);
    if (setup_.longest_window() == 0 && !setup_.has_recurrent())
      demand(least == (of.encoded ? std::min(of.encoded_at, of.length()) : 0),
             "a row of {} tokens can be cut to {} only", of.length(), least);
    if (!of.round)
      demand(of.row.bytes() <= store_->projected_bytes(of.length()),
             "a row of {} holds {} bytes, at most {} were named", of.length(), of.row.bytes(),
             store_->projected_bytes(of.length()));
    demand(of.row.signature() == store_->signature(), "a row of another signature");
  }
}

}  // namespace godwit::cache::state_test
