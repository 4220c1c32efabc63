#include "state/sequence.h"

#include <gtest/gtest.h>
#include <rapidcheck/detail/Configuration.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <sstream>

#include "cache/cold_test_support.h"

namespace godwit::cache::state_test {
namespace {

constexpr int kMostRows = 4, kMostTokens = 320;
constexpr int kStarts[] = {0, 1, 63, 64, 100};

enum What {
  append,
  ragged,
  fork,
  truncate,
  begin,
  commit,
  rollback,
  lose,
  block,
  read,
  donor,
  donors,
  insert,
  find,
  restart,
  create,
  reorder,
  starve,
  kinds
};
// How often each comes, of 100.
constexpr std::array<int, kinds> kShares = {24, 9, 8, 8, 7, 3, 7, 5, 3, 6, 2, 2, 5, 4, 1, 2, 2, 2};
constexpr const char* kNames[] = {"append",   "ragged", "fork",    "truncate", "begin",   "commit",
                                  "rollback", "lose",   "block",   "read",     "donor",   "donors",
                                  "insert",   "find",   "restart", "create",   "reorder", "starve"};

What what_of(int number) {
  int left = number % 100, what = 0;
  while (left >= kShares[static_cast<std::size_t>(what)]) left -= kShares[static_cast<std::size_t>(what++)];
  return static_cast<What>(what);
}

// Mostly few, sometimes more than two blocks; or up to where something begins: a block, the start, or a
// window's first position in a new block.
int span_of(const World& world, int length, int number) {
  const int rest = number / 4;
  if (number % 4 == 0) return 1;
  if (number % 4 == 1) return 2 + rest % 8;
  if (number % 4 == 2) return 9 + rest % 142;
  const int window = world.setup().longest_window(), start = world.setup().policy.start;
  const int edges[] = {0, window, window - 1, start, start - window};
  const int edge = edges[rest % 5] + rest / 5 % 3 - 1;
  return 1 + ((edge - length - 1) % 64 + 64) % 64;
}

class Player {
 public:
  Player(World& world, bool has_disk) : world_(world), has_disk_(has_disk) {}

  void play(const Op& op) {
    if (world_.rows() == 0) world_.create(op.c % 3);
    const int r = op.a % world_.rows();
    switch (what_of(op.what)) {
      case append:
        return world_.step({span(r, op.b, op.c)});
      case lose:
        return world_.step({span(r, op.b, op.c)}, static_cast<End>(1 + op.c % 5));
      case ragged:
        return several(op);
      case fork:
        return make_room(),
               void(world_.fork(op.a % world_.rows(), cut_at(op.a % world_.rows(), op.b), op.c % 3));
      case truncate:
        return void(world_.truncate(r, cut_at(r, op.b)));
      case begin:
        return world_.begin(r);
      case commit:
        return world_.commit(r);
      case rollback:
        return world_.rollback(r, keep_of(r, op.b));
      case block:
        return world_.attend_block(r, 1 + op.b % 40);
      case read:
        return world_.read(r, 1 + op.b % 5);
      case donor:
        return world_.take_donor(r);
      case donors:
        return world_.read_donors();
      case insert:
        return make_room(), world_.insert(op.a % world_.rows());
      case find:
        return look(op);
      case restart:
        return has_disk_ ? world_.restart() : world_.cache().clear();
      case create:
        return make_room(), void(world_.create(op.c % 3));
      case reorder:
        return world_.rotate();
      case starve:
        return void(world_.step_starved({span(r, op.b, op.c)}, 1 + op.c % 3));
      case kinds:
        break;
    }
  }

 private:
  // The row's own tokens, its kind and its images; as many as it takes, but now and then one more.
  Span span(int r, int b, int c) const {
    Span out{.row = r,
             .tokens = std::min(span_of(world_, world_.row(r).length(), b),
                                std::max(1, kMostTokens - world_.row(r).length()))};
    constexpr SpanKind kKinds[] = {SpanKind::causal, SpanKind::causal, SpanKind::committed,
                                   SpanKind::bidirectional};
    out.kind = kKinds[c % 4];
    const int most = world_.longest(r, out.kind);
    if (out.tokens > most && most > 0 && c % 7 != 0) out.tokens = most;
    if (c % 8 == 1 && out.tokens >= 6)
      out.together = {{c % 3, out.tokens / 2}, {out.tokens / 2 + 1, out.tokens}};
    return out;
  }
  void several(const Op& op) {
    std::vector<Span> spans;
    const int count = std::min(world_.rows(), 1 + op.a % kMostRows);
    for (int i = 0; i < count; ++i) spans.push_back(span((op.a + i) % world_.rows(), op.b + i, op.c + i));
    if (world_.setup().mode == NumericMode::reference) spans.resize(1);
    world_.step(spans, op.c % 9 == 0 ? End::drop_evaluated : End::publish);
  }
  // Near the end, near the start of a block, anywhere, or too far.
  int cut_at(int r, int b) const {
    const int length = world_.row(r).length(), least = world_.row(r).row.minimum_reusable_length();
    switch (b % 5) {
      case 0:
        return std::max(0, length - b / 5 % 12);
      case 1:
        return length / 64 * 64;
      case 2:
        return least;
      case 3:
        return b / 5 % 16 == 0 ? length + 1 : std::max(0, least - 1);
      default:
        return length == 0 ? 0 : b / 5 % length;
    }
  }
  int keep_of(int r, int b) const {
    if (!world_.row(r).round) return 0;
    const int appended = world_.row(r).length() - world_.row(r).round_start;
    return b % 9 == 0 ? appended + 1 : b % (appended + 1);
  }
  void make_room() {
    if (world_.rows() >= kMostRows) world_.remove(0);
    if (world_.rows() == 0) world_.create();
  }
  // A prefix of some row's list, and something else behind it.
  void look(const Op& op) {
    make_room();
    const ModelRow& from = world_.row(op.a % world_.rows());
    std::vector<int> list = from.tokens;
    list.resize(static_cast<std::size_t>(op.b % (from.length() + 1)));
    list.push_back(70 + op.c % 2);
    world_.find(list);
    demand(world_.cache().find(list, "nobody's space") == std::nullopt,
           "an entry of another space was found");
  }

  World& world_;
  bool has_disk_;
};

rc::Gen<Op> any_op() {
  const auto number = [](int below) { return rc::gen::inRange(0, below); };
  return rc::gen::build<Op>(rc::gen::set(&Op::what, number(100)), rc::gen::set(&Op::a, number(12)),
                            rc::gen::set(&Op::b, number(3 * 150)), rc::gen::set(&Op::c, number(72)));
}

bool run_checked(NumericMode mode, const Pair& pair, int count, const rc::detail::TestParams& defaults) {
  rc::detail::TestParams params = defaults;
  params.maxSuccess = count;
  const auto property = [&] {
    const Sequence sequence = *any_sequence(mode);
    run_sequence(mode, pair, sequence);
  };
  const rc::detail::TestMetadata name{.id = "",
                                      .description = fmt::format("{} window {}", pair.codec, pair.window)};
  const rc::detail::TestResult result = rc::detail::checkTestable(property, name, params);
  if (result.is<rc::detail::SuccessResult>()) return true;
  std::ostringstream text;
  rc::detail::printResultMessage(result, text);
  ADD_FAILURE() << name.description << "\n" << text.str();
  return false;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Op& op) {
  return out << kNames[what_of(op.what)] << "{" << op.what << "," << op.a << "," << op.b << "," << op.c
             << "}";
}

std::ostream& operator<<(std::ostream& out, const Sequence& s) {
  out << "layers " << s.layers << " start " << kStarts[s.start] << (s.has_cap ? " cap" : "")
      << (s.has_sinks ? " sinks" : "") << (s.has_disk ? " disk" : "") << ":";
  for (const Op& op : s.ops) out << " " << op;
  return out;
}

rc::Gen<Sequence> any_sequence(NumericMode mode) {
  // Their full range from the first sequence on: RapidCheck would start with small ones.
  const auto ops = rc::gen::resize(60, rc::gen::container<std::vector<Op>>(rc::gen::resize(100, any_op())));
  const int layers = mode == NumericMode::native ? kLayerKinds : kLayerKinds - 1;
  return rc::gen::map(rc::gen::resize(100, rc::gen::tuple(rc::gen::inRange(0, layers), rc::gen::inRange(0, 5),
                                                          rc::gen::inRange(0, 64), ops)),
                      [mode](const std::tuple<int, int, int, std::vector<Op>>& made) {
                        const auto& [kind, start, flags, list] = made;
                        const bool native = mode == NumericMode::native;
                        return Sequence{.layers = kind,
                                        .start = start,
                                        .has_cap = native && (flags & 3) == 3,
                                        .has_sinks = native && (flags & 12) == 12,
                                        .has_disk = flags % 8 == 7,
                                        .ops = list};
                      });
}

void run_sequence(NumericMode mode, const Pair& pair, const Sequence& sequence) {
  Setup setup = make_setup(mode, pair, static_cast<Layers>(sequence.layers), kStarts[sequence.start]);
  setup.soft_cap = sequence.has_cap ? 1.5f : 0.0f;
  setup.has_sinks = sequence.has_sinks;
  std::optional<TestFolder> folder;
  if (sequence.has_disk) folder.emplace("state");
  World world(setup, folder ? std::optional(folder->cache()) : std::nullopt);
  Player player(world, sequence.has_disk);
  for (const Op& op : sequence.ops) {
    player.play(op);
    world.check_rows();
  }
  world.read_donors();
  world.check_fresh_rows();
  world.finish();
}

void check_sequences(NumericMode mode, const std::vector<Pair>& pairs, int sequences) {
  const rc::detail::TestParams params = rc::detail::configuration().testParams;
  const int each = (sequences + static_cast<int>(pairs.size()) - 1) / static_cast<int>(pairs.size());
  std::cout << each * static_cast<int>(pairs.size()) << " sequences over " << pairs.size()
            << " pairs of codec and window; RC_PARAMS=\"seed=" << params.seed << "\" runs them again"
            << std::endl;
  rc::detail::TestParams own = params;
  for (const Pair& pair : pairs) {
    own.seed += 1000003;  // other sequences for every pair
    if (!run_checked(mode, pair, each, own)) return;
  }
}

}  // namespace godwit::cache::state_test
