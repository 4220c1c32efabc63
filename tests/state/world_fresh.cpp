// Rows against others that never shared, forked or went back.
#include <algorithm>

#include "base/mx_ops.h"
#include "state/world.h"

namespace godwit::cache::state_test {

// The shortest row against one that never shared, forked or went back.
void World::check_fresh_rows() {
  const ModelRow* shortest = nullptr;
  for (const ModelRow& each : rows_)
    if (!each.round && each.length() > 0 && (!shortest || each.length() < shortest->length()))
      shortest = &each;
  if (!shortest) return;
  if (setup_.mode == NumericMode::reference) {
    const auto exact =
        std::ranges::find_if(rows_, [](const ModelRow& row) { return row.is_exact && !row.round; });
    if (exact != rows_.end()) replay(*exact);
  } else if (shortest->length() <= 150) {
    feed_one_by_one(*shortest);
  }
}

namespace {

std::vector<mx::array> outputs_of(const Setup& setup, ops::NativeRuntime& runtime, const StateStore& store, Row& row,
                                  std::span<const int> tokens, const Chunk& chunk) {
  const RowSpan span{&row, chunk.tokens, chunk.kind, chunk.together};
  const int begin = row.position();
  Step step = store.plan({&span, 1});
  std::vector<mx::array> outputs;
  for (int layer = 0; layer < static_cast<int>(setup.needs.size()); ++layer) {
    const auto part = [&](Plane plane) { return packed(setup, tokens, begin, chunk.tokens, layer, plane); };
    const bool attends = setup.needs[static_cast<std::size_t>(layer)].has_tokens();
    outputs.push_back(mx::contiguous(
        attends ? step.layer(layer).attend(part(Plane::queries), part(Plane::keys), part(Plane::values),
                                           setup.spec(layer))
                : recurred(setup, runtime, step, layer,
                           recurrent_inputs(setup, tokens, begin, chunk.tokens, layer))));
  }
  std::vector<mx::array> all = step.pending();
  all.insert(all.end(), outputs.begin(), outputs.end());
  mx::eval(all);
  step.publish();
  return outputs;
}

void demand_same(const std::vector<mx::array>& a, const std::vector<mx::array>& b, const char* what) {
  for (std::size_t layer = 0; layer < a.size(); ++layer)
    demand(mx::array_equal(a[layer], b[layer]).item<bool>(), "{}: layer {} differs", what, layer);
}

}  // namespace

// The next two steps of the row's fork and of a row that has only seen its chunks.
void World::replay(const ModelRow& row) {
  Row fresh = store_->create();
  std::optional<Round> round;
  int number = 0;
  for (const Chunk& chunk : row.plan) {
    if (round && chunk.round != number) round->commit(), round.reset();
    if (!round && chunk.round != 0) round.emplace(fresh.begin());
    number = chunk.round;
    outputs_of(setup_, runtime_, *store_, fresh, row.tokens, chunk);
  }
  if (round) round->commit();
  std::vector<int> tokens = row.tokens;
  for (int i = 0; i < 5; ++i) tokens.push_back(77 + i);
  Row fork = row.row.fork(row.length());
  for (const int count : {1, 4}) {
    const Chunk next{count, SpanKind::causal, {}, 0};
    demand_same(outputs_of(setup_, runtime_, *store_, fork, tokens, next),
                outputs_of(setup_, runtime_, *store_, fresh, tokens, next), "a row and a fresh one of the same chunks");
  }
}

void World::feed_one_by_one(const ModelRow& row) {
  std::vector<int> tokens = row.tokens;
  tokens.push_back(77);
  Row fresh = store_->create(), fork = row.row.fork(row.length());
  for (int i = 0; i < row.length(); ++i)
    outputs_of(setup_, runtime_, *store_, fresh, tokens, {1, SpanKind::causal, {}, 0});
  const Chunk next{1, SpanKind::causal, {}, 0};
  demand_same(outputs_of(setup_, runtime_, *store_, fork, tokens, next),
              outputs_of(setup_, runtime_, *store_, fresh, tokens, next), "a row and one fed token by token");
}

}  // namespace godwit::cache::state_test
