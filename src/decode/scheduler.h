// Continuous batching: every step serves all rows that can go on. docs/scheduler.md.
//
// A turn looks for cancelled jobs, gives rows to those who wait as far as places and memory go, takes memory back where
// growth needs it, and runs one step. On the engine thread.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/log.h"
#include "decode/answer_records.h"
#include "decode/engine_options.h"
#include "decode/engine_stats.h"
#include "decode/mailbox.h"
#include "decode/prefix_sharing.h"
#include "decode/row_stores.h"
#include "decode/step_batch.h"
#include "decode/step_planner.h"

namespace godwit::decode {

// Throws Error{context_over_budget}: a request that would not fit `budget` bytes if it were alone. What `max_tokens` does
// not ask for is not counted.
void need_budget(const models::ModelBundle& bundle, const GenerationRequest& request, const cache::StateStore& store,
                 std::size_t budget);

class Scheduler {
 public:
  // All must outlive it. Throws what AnswerRecords and model_identity() throw where checkpoints are wanted.
  Scheduler(const models::ModelBundle& bundle, const EngineOptions& options, Mailbox& mailbox, RowStores& stores,
            EngineCounters& counters, const Log& log);

  // False: there is nothing to do until the bell rings, or for patience() seconds.
  bool turn();
  std::optional<double> patience() const;
  // Ends every row with an error; what is recorded of answers stays.
  void end_all(ErrorCode code, std::string_view reason);

  // A row is let in only if it and those that run can grow by so many tokens: none is preempted sooner than that.
  static constexpr int kHeadroom = 64;
  // Later requests that may pass one that waits for memory.
  static constexpr int kMostPassing = 8;

 private:
  struct Waiting;

  void end_cancelled();
  void watch_readers();
  void watch_reader(ActiveRow& row) const;

  void admit();
  bool has_place();
  bool fits(const Waiting& waiting);
  void let_in(Waiting waiting);
  void start(const Ticket& ticket);
  std::unique_ptr<ActiveRow> make_row(const Ticket& ticket);
  void insert(std::unique_ptr<ActiveRow> row);

  void begin_rows();
  std::size_t reserved(int headroom) const;
  void make_room();
  bool rest_a_stalled_row();
  void preempt(ActiveRow& row);

  void run(const PlannedStep& step);
  void choose(std::span<const PlannedSpan> spans, std::span<StepPart> parts,
              std::vector<AnswerBuilder::Choice>& choices) const;
  void settle(ActiveRow& row, StepPart& part, AnswerBuilder::Choice choice);
  // Takes up what an earlier process recorded of the answer.
  void resume(ActiveRow& row, const Ticket& ticket);
  void record(ActiveRow& row);
  void end(ActiveRow& row, FinishReason reason);
  void fail_row(ActiveRow& row, std::exception_ptr problem);
  void leave(const ActiveRow& row);
  void count() const;

  const models::ModelBundle& bundle_;
  EngineOptions options_;
  Mailbox& mailbox_;
  RowStores& stores_;
  EngineCounters& counters_;
  Log log_;
  PrefixSharing sharing_;
  StepPlanner planner_;
  StepBatch batch_;
  std::optional<AnswerRecords> records_;
  Rows active_;   // by priority, then arrival
  Rows resting_;  // preempted: their rows are empty
};

}  // namespace godwit::decode
