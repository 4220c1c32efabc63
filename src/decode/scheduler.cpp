#include "decode/scheduler.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/mx_error.h"
#include "decode/model_identity.h"

namespace godwit::decode {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// `work`, with what it throws handed to `failed`.
template <typename Work, typename Failed>
void guarded(Work&& work, Failed&& failed) {
  std::exception_ptr problem;
  try {
    translate_mx_errors("engine", work);
  } catch (const std::exception&) {
    problem = std::current_exception();
  }
  // Handed over whole: after this line the exception belongs to the job's holder alone.
  if (problem) failed(std::move(problem));
}

template <typename Each>
void erase_row(Rows& rows, const Each& row) {
  std::erase_if(rows, [&](const auto& each) { return each.get() == &row; });
}

// Whether the model has all tokens that a choice names.
bool is_of(const AnswerBuilder::Choice& choice, int vocabulary) {
  const auto is_token = [vocabulary](int id) { return id >= 0 && id < vocabulary; };
  return is_token(choice.id) && std::ranges::all_of(choice.top_logprobs, is_token, &TokenLogprob::id);
}

int wanted_tokens(const models::ModelBundle& bundle, const GenerationRequest& request) {
  const int left = bundle.context_length - static_cast<int>(request.prompt.size());
  return request.max_tokens < 0 ? left : std::min(left, request.max_tokens);
}

}  // namespace

void need_budget(const models::ModelBundle& bundle, const GenerationRequest& request, const cache::StateStore& store,
                 std::size_t budget) {
  const int answer = request.max_tokens < 0 ? 1 : wanted_tokens(bundle, request);
  const auto prompt = static_cast<int>(request.prompt.size());
  const std::size_t needed = bytes_of(store, prompt + answer);
  if (needed > budget)
    fail(ErrorCode::context_over_budget, "request",
         "a prompt of {} tokens and {} of the answer take {} MiB of memory, and {} MiB may be used: {} tokens in all",
         prompt, answer, (needed >> 20) + 1, budget >> 20, longest_within(store, budget, prompt + answer));
}

Scheduler::Scheduler(const models::ModelBundle& bundle, const EngineOptions& options, Mailbox& mailbox,
                     RowStores& stores, EngineCounters& counters, const Log& log)
    : bundle_(bundle),
      options_(options),
      mailbox_(mailbox),
      stores_(stores),
      counters_(counters),
      log_(log),
      sharing_(bundle.mode),
      planner_(bundle.mode, options),
      batch_(bundle) {
  if (options.checkpoint_every > 0) {
    const auto& folder = options.cache.folder;
    records_.emplace(folder, model_identity(bundle, bundle.options.packed_folder.value_or(folder), log), log);
  }
  counters_.budget_bytes = static_cast<std::int64_t>(stores.row_budget());
}

bool Scheduler::turn() {
  counters_.beat();
  end_cancelled();
  watch_readers();
  admit();
  make_room();
  begin_rows();
  const PlannedStep step = planner_.plan(active_, sharing_);
  if (!step.empty()) run(step);
  count();
  return !step.empty();
}

void Scheduler::begin_rows() {
  for (std::size_t i = 0; i < active_.size(); ++i) {
    ActiveRow& row = *active_[i];
    if (row.is_begun) continue;
    std::exception_ptr problem;
    guarded([&] { sharing_.begin(row, active_); }, [&](std::exception_ptr thrown) { problem = std::move(thrown); });
    if (problem) return fail_row(row, std::move(problem));  // the others begin in the next turn
  }
}

void Scheduler::end_cancelled() {
  counters_.cancelled += mailbox_.end_cancelled();
  for (Rows* rows : {&active_, &resting_})
    for (std::size_t i = rows->size(); i-- > 0;) {
      ActiveRow& row = *(*rows)[i];
      if (row.is_unwanted()) end(row, FinishReason::cancelled);
    }
}

void Scheduler::watch_readers() {
  for (Rows* rows : {&active_, &resting_})
    for (std::size_t i = rows->size(); i-- > 0;) {
      ActiveRow& row = *(*rows)[i];
      watch_reader(row);
      if (row.stalled_since && options_.stall_seconds && seconds_since(*row.stalled_since) >= *options_.stall_seconds)
        end(row, FinishReason::cancelled);
    }
}

// A row pauses when its reader is behind by the limit, and goes on when half of that is left.
void Scheduler::watch_reader(ActiveRow& row) const {
  const std::size_t half = options_.event_limit / 2;
  if (row.stalled_since) {
    if (row.job().untaken() <= half) row.stalled_since.reset();
  } else if (row.job().untaken() >= options_.event_limit && row.job().ring_below(half)) {
    row.stalled_since = Clock::now();
  }
}

std::optional<double> Scheduler::patience() const {
  if (!options_.stall_seconds) return std::nullopt;
  std::optional<double> least;
  for (const Rows* rows : {&active_, &resting_})
    for (const auto& row : *rows) {
      if (!row->stalled_since) continue;
      const double left = std::max(0.0, *options_.stall_seconds - seconds_since(*row->stalled_since));
      least = std::min(least.value_or(left), left);
    }
  return least;
}

void Scheduler::run(const PlannedStep& step) {
  const Clock::time_point begin = Clock::now();
  std::vector<StepPart> parts;
  for (const PlannedSpan& each : step.spans) parts.push_back(each.row->part(each.span));
  for (std::size_t first = 0, end = 0; first < parts.size(); first = end) {
    const RowStore& home = step.spans[first].row->home();
    while (end < parts.size() && &step.spans[end].row->home() == &home) ++end;
    batch_.run(home.store, std::span(parts).subspan(first, end - first));
    const auto spans = std::span(step.spans).subspan(first, end - first);
    std::vector<AnswerBuilder::Choice> choices(spans.size());
    choose(spans, std::span(parts).subspan(first, end - first), choices);
    for (std::size_t i = 0; i < spans.size(); ++i)
      settle(*spans[i].row, parts[first + i], std::move(choices[i]));
    ++counters_.steps;
  }
  counters_.prompt_tokens += step.prompt_tokens;
  const double seconds = seconds_since(begin);
  (step.prompt_tokens > 0 ? counters_.prefill_step_seconds : counters_.decode_step_seconds).observe(seconds);
  counters_.batch_rows.observe(static_cast<double>(step.spans.size()));
  planner_.saw(step, seconds);
  sharing_.hand_over(active_);
}

// A choice is a function of its row alone, so rows make theirs side by side.
void Scheduler::choose(std::span<const PlannedSpan> spans, std::span<StepPart> parts,
                       std::vector<AnswerBuilder::Choice>& choices) const {
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].problem) continue;
    if (parts[i].wanted == StepPart::Wanted::argmax) choices[i].id = parts[i].argmax;
    if (parts[i].wanted == StepPart::Wanted::logits) open.push_back(i);
  }
  const auto choose_one = [&](std::size_t i) {
    guarded([&] { choices[i] = spans[i].row->answer().choose(parts[i].logits); },
            [&](std::exception_ptr problem) { parts[i].problem = std::move(problem); });
  };
  if (bundle_.runtime && open.size() > 1)
    bundle_.runtime->pool.run(static_cast<int>(open.size()),
                              [&](int n) { choose_one(open[static_cast<std::size_t>(n)]); });
  else
    std::ranges::for_each(open, choose_one);
}

// What a step has made of one of its rows.
void Scheduler::settle(ActiveRow& row, StepPart& part, AnswerBuilder::Choice choice) {
  if (part.problem) return fail_row(row, std::move(part.problem));
  TokenEvent event;
  if (part.wanted != StepPart::Wanted::nothing) {
    if (!row.record.empty()) row.unrecorded.push_back(choice);
    std::exception_ptr problem;
    guarded([&] { event = row.take(std::move(choice)); }, [&](std::exception_ptr thrown) { problem = std::move(thrown); });
    if (problem) return fail_row(row, std::move(problem));
    if (event.id >= 0) ++counters_.answer_tokens;
    const bool is_last = row.answer().is_finished();
    row.push(std::move(event));
    if (is_last) {
      ++counters_.finished;
      row.remember();
      return leave(row);
    }
    if (row.unrecorded.size() >= static_cast<std::size_t>(std::max(options_.checkpoint_every, 1))) record(row);
  }
  if (row.is_at_kept_place()) row.remember();
}

void Scheduler::end(ActiveRow& row, FinishReason reason) {
  ++(reason == FinishReason::cancelled ? counters_.cancelled : counters_.finished);
  row.push(row.answer().end(reason));
  row.remember();
  leave(row);
}

void Scheduler::fail_row(ActiveRow& row, std::exception_ptr problem) {
  ++counters_.failed;
  try {
    std::rethrow_exception(problem);
  } catch (const std::exception& error) {
    log_.warning("a request failed: {}", error.what());
  }
  row.job().fail(std::move(problem));
  leave(row);
}

void Scheduler::resume(ActiveRow& row, const Ticket& ticket) {
  if (!records_ || !AnswerRecords::is_recordable(ticket.job->request)) return;
  row.record = records_->key_of(ticket.job->request, ticket.choice, row.home().store.signature().to_string());
  for (AnswerBuilder::Choice& choice : records_->take(row.record)) {
    if (!is_of(choice, bundle_.vocabulary) || row.answer().is_finished()) return;  // a damaged record
    row.push(row.take(std::move(choice)));
  }
}

void Scheduler::record(ActiveRow& row) {
  records_->add(row.record, row.unrecorded);
  row.unrecorded.clear();
  row.remember();
}

void Scheduler::leave(const ActiveRow& row) {
  if (!row.record.empty()) records_->drop(row.record);
  sharing_.leave(row, active_);
  const Timings& t = row.timings();
  if (t.cached_tokens > 0) {
    ++counters_.prefix_hits;
    counters_.prefix_tokens += t.cached_tokens;
  }
  log_.debug("prompt of {} tokens, {} of them found in the cache, answer of {}", t.prompt_tokens, t.cached_tokens,
             t.completion_tokens);
  erase_row(resting_, row);
  erase_row(active_, row);
}

void Scheduler::end_all(ErrorCode code, std::string_view reason) {
  for (Rows* rows : {&active_, &resting_}) {
    for (const auto& row : *rows)
      if (!row->record.empty()) record(*row);
    for (const auto& row : *rows) row->job().fail(std::make_exception_ptr(Error(code, "engine", reason)));
    rows->clear();
  }
}

void Scheduler::count() const {
  const auto paused = std::ranges::count_if(active_, [](const auto& row) { return row->stalled_since.has_value(); });
  counters_.rows_paused = paused;
  counters_.rows_running = static_cast<std::int64_t>(active_.size()) - paused;
  counters_.rows_waiting = static_cast<std::int64_t>(resting_.size() + mailbox_.answers());
  counters_.resident_bytes = static_cast<std::int64_t>(stores_.resident_bytes());
}

}  // namespace godwit::decode
