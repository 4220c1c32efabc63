// One answer on the engine thread: its row, what the row still has to be fed, and its answer.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "decode/answer_builder.h"
#include "decode/mailbox.h"
#include "decode/row_runner.h"
#include "decode/row_stores.h"
#include "decode/step_batch.h"

namespace godwit::decode {

class ActiveRow {
 public:
  // `limit`: tokens that may be made. Throws what the request's constraint throws.
  ActiveRow(const models::ModelBundle& bundle, Ticket ticket, std::shared_ptr<RowStore> home, int limit);

  Job::Impl& job() const { return *job_; }
  // Nobody wants the answer any more.
  bool is_unwanted() const { return job_->is_cancelled(choice_) || job_->has_failed(); }
  RowStore& home() const { return *home_; }
  RowRunner& runner() { return runner_; }
  const RowRunner& runner() const { return runner_; }
  AnswerBuilder& answer() { return answer_; }

  // Prompt and answer: what the row is to hold, but for the last token, before the next one can be made.
  std::span<const int> tokens() const { return tokens_; }
  int length() const { return static_cast<int>(tokens_.size()); }
  int position() const { return runner_.position(); }
  int left() const { return length() - position(); }
  // The next step makes a token of it whatever else runs.
  bool is_decoding() const { return left() == 1; }
  // The most tokens that it may ever have.
  int longest() const { return static_cast<int>(job_->request.prompt.size()) + answer_.limit(); }

  // Tokens of its next span, at most `most`, and never past `stop` (a position that others wait for). `reference` has a
  // plan of its own: the chunks of the oracle, then token after token.
  int next_span(int most, std::optional<int> stop) const;
  StepPart part(int span);

  // Whether the row stands where a prompt is kept for others: behind every 256 tokens, in `reference` behind every chunk,
  // and before its last token.
  bool is_at_kept_place() const;
  // A row that holds the beginning of its tokens already.
  void start_from(cache::Row row);
  // Gives the row's memory back. All of its tokens are to be fed again, by the same plan.
  void put_down();
  // Puts what the row holds into the prompt cache.
  void remember();

  // Takes a token into the answer and tells the job.
  TokenEvent take(AnswerBuilder::Choice choice);
  void push(TokenEvent event);
  const Timings& timings() const { return timings_; }

  // Where the answer is recorded, and what of it is not yet; empty: nowhere. The scheduler's, as are those below.
  std::string record;
  std::vector<AnswerBuilder::Choice> unrecorded;
  // Who computes the first `shared` tokens for this row; null: nobody.
  ActiveRow* leader = nullptr;
  int shared = 0;
  int started_at = 0;      // tokens that were found when it was begun
  bool is_begun = false;   // it has looked for them
  std::int64_t passed = 0; // tokens of other prompts that were computed while it waited with its own
  std::optional<std::chrono::steady_clock::time_point> stalled_since;  // its reader is behind

 private:
  using Clock = std::chrono::steady_clock;

  void count_time();

  bool is_native_;
  std::shared_ptr<Job::Impl> job_;
  int choice_;
  std::shared_ptr<RowStore> home_;
  RowRunner runner_;
  AnswerBuilder answer_;
  std::vector<int> tokens_;
  Timings timings_;
  bool prompt_done_ = false, was_put_down_ = false;
  Clock::time_point mark_ = Clock::now();  // start of the phase whose seconds are being counted
};

}  // namespace godwit::decode
