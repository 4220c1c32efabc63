// A state store beside its model: a row is a list of tokens. Every operation does the same to both, and
// everything that attends is compared with the oracle.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include "base/error.h"
#include "cache/prefix_cache.h"
#include "state/oracle.h"

namespace godwit::cache::state_test {

struct Broken : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <typename... Args>
void demand(bool holds, fmt::format_string<Args...> format, Args&&... args) {
  if (!holds) throw Broken(fmt::format(format, std::forward<Args>(args)...));
}

// The call must throw Error{code}.
template <typename Call>
void demand_error(ErrorCode code, const char* what, Call&& call) {
  try {
    call();
  } catch (const Error& e) {
    return demand(e.code() == code, "{}: another error: {}", what, e.what());
  }
  demand(false, "{}: nothing was thrown", what);
}

// One forward of a row, as a fresh row would have to do it to owe the same bits in `reference`.
struct Chunk {
  int tokens = 0;
  SpanKind kind = SpanKind::causal;
  std::vector<Together> together = {};
  int round = 0;  // chunks of one round share a number
};

struct ModelRow {
  Row row;
  std::vector<int> tokens = {};
  int stream = 0;  // what its next tokens are
  bool encoded = false;
  int encoded_at = 0;
  bool is_whole = true;  // everything that a read sees is still there: no cut since the last append
  // Declared behind the row: it goes first.
  std::unique_ptr<Round> round = {};
  int round_start = 0, round_number = 0;
  bool is_whole_at_begin = true;
  std::vector<Chunk> plan = {}, plan_at_begin = {};
  bool is_exact = true;  // the plan leaves these very bits (`reference`)

  int length() const { return static_cast<int>(tokens.size()); }
};

struct Span {
  int row = 0;
  int tokens = 1;
  SpanKind kind = SpanKind::causal;
  std::vector<Together> together = {};
};

// How a step ends: published, or dropped after some of its layers have stored.
enum class End { publish, drop_at_once, drop_after_one, drop_evaluated, fail_in_a_layer, publish_too_early };

class World {
 public:
  // With a folder, the prompt cache has a cold tier there.
  explicit World(Setup setup, std::optional<std::filesystem::path> folder = {});
  ~World();

  int rows() const { return static_cast<int>(rows_.size()); }
  ModelRow& row(int r) { return rows_[static_cast<std::size_t>(r)]; }
  const Setup& setup() const { return setup_; }
  const StateStore& store() const { return *store_; }
  // What the model says row r can take now.
  int longest(int r, SpanKind kind) const;

  int create(int stream = 0);
  void remove(int r);
  void rotate();  // the list of rows, one further
  // Spans that the rows cannot take must be refused.
  void step(const std::vector<Span>& spans, End end = End::publish);
  // The same, but the count-th block that it asks for is not to be had. Answers whether it got that far; if
  // so, nothing has happened.
  bool step_starved(const std::vector<Span>& spans, int count);
  void append(int r, int tokens, SpanKind kind = SpanKind::causal) { step({{r, tokens, kind, {}}}); }
  // At least 0 and at most its length; prefixes that are gone must be refused. fork() answers whether there
  // is a new row, the last.
  bool fork(int r, int prefix, int stream);
  bool truncate(int r, int length);
  void begin(int r);
  void commit(int r);
  void rollback(int r, int keep);
  void read(int r, int queries) { read(row(r), queries); }
  void attend_block(int r, int tokens);

  // A fork that is read later, whatever its origin does meanwhile.
  void take_donor(int r);
  void read_donors();

  void insert(int r);
  // What is found of a list becomes the last row. The answer: its length, 0 for none.
  int find(std::vector<int> tokens, const std::string& space = "");
  std::string space_of(int r);
  void restart();  // a new process over the same folder: no rows
  PrefixCache& cache() { return *cache_; }

  // All that must hold after every operation; and at the end, when everything has been let go.
  void check_rows();
  void check_fresh_rows();
  void finish();

 private:
  void open();
  void plan_and_run(const std::vector<Span>& spans, End end);
  void run_layers(Step& step, const std::vector<Span>& spans, const std::vector<std::vector<int>>& lists,
                  End end);
  mx::array run_layer(Step& step, int layer, const std::vector<Span>& spans,
                      const std::vector<std::vector<int>>& lists);
  void compare(int layer, const mx::array& out, const std::vector<Span>& spans,
               const std::vector<std::vector<int>>& lists);
  void check_outputs(const Asked& asked, std::span<const float> out);
  void published(const std::vector<Span>& spans, const std::vector<std::vector<int>>& lists);
  void read(ModelRow& from, int queries);
  void maintain(ModelRow& row);
  void cut(ModelRow& row, int length);
  bool may_cut(const ModelRow& row, int length) const;
  void replay(const ModelRow& row);
  void feed_one_by_one(const ModelRow& row);

  Setup setup_;
  std::optional<std::filesystem::path> folder_;
  ops::NativeRuntime runtime_;
  Oracle oracle_;
  std::unique_ptr<ColdTier> cold_;
  std::unique_ptr<StateStore> store_;
  std::unique_ptr<PrefixCache> cache_;
  std::vector<ModelRow> rows_, donors_;
  int rounds_ = 0;
};

}  // namespace godwit::cache::state_test
