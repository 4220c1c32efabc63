#include "state/world.h"

#include <algorithm>
#include <climits>

#include "base/mx_ops.h"
#include "kernels/select.h"

namespace godwit::cache::state_test {
namespace {

constexpr std::size_t kPlenty = std::size_t{1} << 30;

int token_of(int stream, int position) { return stream * 5 + position % 5; }

}  // namespace

World::World(Setup setup, std::optional<std::filesystem::path> folder)
    : setup_(std::move(setup)),
      folder_(std::move(folder)),
      runtime_(kernels::best_level(), 1),
      oracle_(runtime_, setup_) {
  open();
}

World::~World() = default;

void World::open() {
  if (folder_)
    cold_ = std::make_unique<ColdTier>(
        ColdOptions{.folder = *folder_, .cap_bytes = kPlenty, .queue_bytes = kPlenty, .hooks = {}}, Log());
  store_ = std::make_unique<StateStore>(setup_.needs, setup_.policy, setup_.mode, &runtime_);
  cache_ = std::make_unique<PrefixCache>(
      *store_, PrefixCacheOptions{.cap_bytes = kPlenty, .identity = "test"}, cold_.get());
}

void World::restart() {
  finish();
  open();
}

void World::finish() {
  rows_.clear();
  donors_.clear();
  cache_.reset();
  if (cold_) cold_->flush();
  demand(store_->resident_bytes() == 0, "{} bytes of blocks are left when nothing holds any",
         store_->resident_bytes());
  cold_.reset();
  store_.reset();
}

int World::create(int stream) {
  rows_.push_back({.row = store_->create(), .stream = stream});
  ModelRow& made = rows_.back();
  made.encoded = setup_.mode == NumericMode::native && setup_.is_encodable() && setup_.policy.start == 0;
  return rows() - 1;
}

void World::remove(int r) { rows_.erase(rows_.begin() + r); }

void World::rotate() { std::ranges::rotate(rows_, rows_.begin() + 1); }

int World::longest(int r, SpanKind kind) const {
  const ModelRow& row = rows_[static_cast<std::size_t>(r)];
  const int start = setup_.policy.start;
  if (!setup_.is_encodable() || row.encoded || start == 0) return INT_MAX;
  if (setup_.mode == NumericMode::reference && kind == SpanKind::causal) return INT_MAX;
  if (row.length() < start) return start - row.length();
  return row.round ? 0 : INT_MAX;
}

// A row turns to its codec at the first chance after it has reached its start, never inside a round.
void World::maintain(ModelRow& row) {
  if (!setup_.is_encodable() || row.encoded || row.round || row.length() == 0) return;
  if (row.length() < setup_.policy.start) return;
  row.encoded = true;
  row.encoded_at = setup_.policy.start == 0 ? 0 : row.length();
}

void World::step(const std::vector<Span>& spans, End end) {
  bool fits = true;
  std::vector<RowSpan> planned;
  for (const Span& span : spans) {
    const int most = longest(span.row, span.kind), said = row(span.row).row.longest_span(span.kind);
    demand(most == said, "a row of {} says that its longest span is {}, not {}", row(span.row).length(), said,
           most);
    fits = fits && span.tokens <= most;
    planned.push_back({&row(span.row).row, span.tokens, span.kind, span.together});
  }
  if (fits) return plan_and_run(spans, end);
  demand_error(ErrorCode::invalid_argument, "a span across the start", [&] { store_->plan(planned); });
}

void World::plan_and_run(const std::vector<Span>& spans, End end) {
  std::vector<RowSpan> planned;
  std::vector<std::vector<int>> lists;
  for (const Span& span : spans) {
    ModelRow& to = row(span.row);
    planned.push_back({&to.row, span.tokens, span.kind, span.together});
    maintain(to);
    lists.push_back(to.tokens);
    // What is dropped is nothing that comes later: its traces would be seen.
    const int stream = end == End::publish ? to.stream : 90;
    for (int i = 0; i < span.tokens; ++i) lists.back().push_back(token_of(stream, to.length() + i));
  }
  Step step = store_->plan(planned);
  for (std::size_t i = 0; i < spans.size(); ++i)
    demand(step.row_offsets()[i] == row(spans[i].row).length() && step.row_tokens()[i] == spans[i].tokens,
           "row {} of a Step stands at {}", i, step.row_offsets()[i]);
  run_layers(step, spans, lists, end);
  if (end == End::publish) {
    step.publish();
    published(spans, lists);
    demand_error(ErrorCode::internal, "a second publish", [&] { step.publish(); });
  }
}

void World::run_layers(Step& step, const std::vector<Span>& spans, const std::vector<std::vector<int>>& lists,
                       End end) {
  if (end == End::drop_at_once) return;
  const int layers = static_cast<int>(setup_.needs.size());
  const bool is_partly =
      end == End::drop_after_one || end == End::publish_too_early || end == End::fail_in_a_layer;
  std::vector<mx::array> outputs;
  for (int layer = 0; layer < (is_partly ? layers - 1 : layers); ++layer)
    outputs.push_back(run_layer(step, layer, spans, lists));
  if (end == End::fail_in_a_layer) {
    const mx::array none = mx::zeros({1, 1, 1});
    demand_error(ErrorCode::internal, "a layer with other shapes",
                 [&] { step.layer(layers - 1).attend(none, none, none, setup_.spec(layers - 1)); });
  }
  ModelRow& first = row(spans[0].row);
  demand_error(ErrorCode::internal, "a cut inside a Step", [&] { first.row.truncate(first.length()); });
  demand_error(ErrorCode::internal, "a fork inside a Step", [&] { static_cast<void>(first.row.fork(0)); });
  if (end == End::publish_too_early)
    demand_error(ErrorCode::internal, "a missing layer", [&] { step.publish(); });
  std::vector<mx::array> all = step.pending();
  all.insert(all.end(), outputs.begin(), outputs.end());
  mx::eval(all);
  for (int layer = 0; layer < static_cast<int>(outputs.size()); ++layer)
    compare(layer, outputs[static_cast<std::size_t>(layer)], spans, lists);
}

mx::array World::run_layer(Step& step, int layer, const std::vector<Span>& spans,
                           const std::vector<std::vector<int>>& lists) {
  const bool is_recurrent = setup_.needs[static_cast<std::size_t>(layer)].content == Content::recurrent;
  std::vector<std::vector<mx::array>> parts(3);
  std::optional<RecurrentInputs> inputs;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const int begin = row(spans[i].row).length(), count = spans[i].tokens;
    if (is_recurrent) {
      RecurrentInputs own = recurrent_inputs(setup_, lists[i], begin, count, layer);
      parts[0].push_back(own.mixed), parts[1].push_back(own.decay), parts[2].push_back(own.update);
      inputs = std::move(own);
      continue;
    }
    for (const Plane plane : {Plane::queries, Plane::keys, Plane::values})
      parts[static_cast<std::size_t>(plane)].push_back(packed(setup_, lists[i], begin, count, layer, plane));
  }
  if (!is_recurrent)
    return step.layer(layer).attend(mx::concatenate(parts[0], 0), mx::concatenate(parts[1], 0),
                        mx::concatenate(parts[2], 0), setup_.spec(layer));
  inputs->mixed = mx::concatenate(parts[0], 0);
  inputs->decay = mx::concatenate(parts[1], 0);
  inputs->update = mx::concatenate(parts[2], 0);
  return recurred(setup_, runtime_, step, layer, *inputs);
}

void World::compare(int layer, const mx::array& out, const std::vector<Span>& spans,
                    const std::vector<std::vector<int>>& lists) {
  const mx::array dense = mx::contiguous(out);
  mx::eval(dense);
  const std::size_t each = dense.size() / static_cast<std::size_t>(dense.shape(0));
  std::size_t at = 0;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const ModelRow& of = row(spans[i].row);
    const std::size_t size = each * static_cast<std::size_t>(spans[i].tokens);
    check_outputs({.layer = layer,
                   .tokens = lists[i],
                   .begin = of.length(),
                   .count = spans[i].tokens,
                   .kind = spans[i].kind,
                   .together = spans[i].together,
                   .encoded = of.encoded},
                  {dense.data<float>() + at, size});
    at += size;
  }
}

void World::check_outputs(const Asked& asked, std::span<const float> out) {
  const bool is_recurrent = setup_.needs[static_cast<std::size_t>(asked.layer)].content == Content::recurrent;
  const bool owes_bits = is_recurrent || (setup_.mode == NumericMode::native && !asked.is_block);
  const std::string where = fmt::format("layer {}, {} queries at {}", asked.layer, asked.count, asked.begin);
  if (owes_bits) {
    const std::vector<float> owed = is_recurrent ? oracle_.recurrent_bits(asked) : oracle_.native_bits(asked);
    demand(owed.size() == out.size(), "{}: {} numbers, not {}", where, out.size(), owed.size());
    const auto [wrong, right] = std::ranges::mismatch(out, owed);
    return demand(wrong == out.end(), "{}: number {} is {}, not {}", where, wrong - out.begin(),
                  wrong == out.end() ? 0 : *wrong, right == owed.end() ? 0 : *right);
  }
  for (const int index : {0, asked.count / 2, asked.count - 1}) {
    const std::vector<double> owed = oracle_.exact(asked, index);
    for (std::size_t i = 0; i < owed.size(); ++i) {
      const double got = static_cast<double>(out[static_cast<std::size_t>(index) * owed.size() + i]);
      demand(std::abs(got - owed[i]) <= kTolerance, "{}: query {}, number {} is {}, not {}", where, index, i,
             got, owed[i]);
    }
  }
}

void World::published(const std::vector<Span>& spans, const std::vector<std::vector<int>>& lists) {
  for (std::size_t i = 0; i < spans.size(); ++i) {
    ModelRow& to = row(spans[i].row);
    to.tokens = lists[i];
    to.is_whole = true;
    to.plan.push_back({spans[i].tokens, spans[i].kind, spans[i].together, to.round ? to.round_number : 0});
  }
}

void World::read(ModelRow& from, int queries) {
  const RowSpan span{&from.row, queries};
  if (from.length() == 0) return;
  std::optional<Step> step;
  try {
    step.emplace(store_->read({&span, 1}));
  } catch (const Error& e) {
    // The row has been cut to where its window is still enough for the next token, but not for a read.
    const bool is_gone =
        e.code() == ErrorCode::invalid_argument && !from.is_whole && setup_.longest_window() > 0;
    return demand(is_gone, "a read at {}: {}", from.length(), e.what());
  }
  std::vector<int> list = from.tokens;
  for (int i = 0; i < queries; ++i) list.push_back(200 + i);
  for (int layer = 0; layer < static_cast<int>(setup_.needs.size()); ++layer) {
    if (!setup_.needs[static_cast<std::size_t>(layer)].has_tokens()) continue;
    const mx::array q = packed(setup_, list, from.length(), queries, layer, Plane::queries);
    const mx::array out = mx::contiguous(step->layer(layer).attend(q, setup_.spec(layer)));
    mx::eval(out);
    check_outputs({.layer = layer,
                   .tokens = list,
                   .begin = from.length(),
                   .count = queries,
                   .encoded = from.encoded,
                   .is_read = true},
                  {out.data<float>(), out.size()});
  }
  demand_error(ErrorCode::internal, "publishing a read", [&] { step->publish(); });
}

void World::attend_block(int r, int tokens) {
  ModelRow& of = row(r);
  if (tokens > longest(r, SpanKind::bidirectional)) return;
  maintain(of);
  std::vector<int> list = of.tokens;
  for (int i = 0; i < tokens; ++i) list.push_back(token_of(91, of.length() + i));
  const RowSpan span{&of.row, tokens, SpanKind::bidirectional, {}};
  Step step = store_->plan({&span, 1});
  for (int layer = 0; layer < static_cast<int>(setup_.needs.size()); ++layer) {
    const LayerNeed& need = setup_.needs[static_cast<std::size_t>(layer)];
    if (need.content != Content::keys_values && need.content != Content::latent) continue;
    const mx::array out = mx::contiguous(step.layer(layer).attend_block(
        packed(setup_, list, of.length(), tokens, layer, Plane::queries),
        packed(setup_, list, of.length(), tokens, layer, Plane::keys),
        packed(setup_, list, of.length(), tokens, layer, Plane::values), setup_.spec(layer)));
    mx::eval(out);
    check_outputs({.layer = layer,
                   .tokens = list,
                   .begin = of.length(),
                   .count = tokens,
                   .encoded = of.encoded,
                   .is_block = true},
                  {out.data<float>(), out.size()});
  }
}

}  // namespace godwit::cache::state_test
