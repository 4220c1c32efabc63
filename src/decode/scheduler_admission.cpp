// Who gets a row, and who gives one back.
#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/mx_error.h"
#include "decode/scheduler.h"

namespace godwit::decode {

// One that waits for a row: an answer that was not begun, or a row that was preempted.
struct Scheduler::Waiting {
  Ticket ticket = {};
  ActiveRow* rested = nullptr;

  Job::Impl& job() const { return rested ? rested->job() : *ticket.job; }
};

void Scheduler::admit() {
  std::vector<Waiting> line;
  for (const auto& row : resting_)
    if (!row->stalled_since) line.push_back({.ticket = {}, .rested = row.get()});
  for (Ticket& ticket : mailbox_.waiting()) line.push_back({.ticket = std::move(ticket), .rested = nullptr});
  std::ranges::stable_sort(line, [](const Waiting& a, const Waiting& b) { return a.job().comes_before(b.job()); });
  std::vector<Job::Impl*> passed;
  for (Waiting& waiting : line) {
    if (!has_place()) return;
    if (!fits(waiting)) {
      // A preempted row is passed by nobody: what they take is what it waits for.
      if (waiting.rested || waiting.job().passed_by >= kMostPassing) return;
      passed.push_back(&waiting.job());
      continue;
    }
    for (Job::Impl* job : passed) ++job->passed_by;
    let_in(std::move(waiting));
  }
}

bool Scheduler::has_place() {
  return active_.size() < static_cast<std::size_t>(options_.max_rows) || rest_a_stalled_row();
}

bool Scheduler::fits(const Waiting& waiting) {
  const GenerationRequest& request = waiting.job().request;
  std::size_t needed = 0;
  if (waiting.rested) {
    ActiveRow& row = *waiting.rested;
    needed = row.home().bytes_of(std::min(row.length() + kHeadroom, row.longest()));
  } else {
    const int more = request.max_tokens < 0 ? kHeadroom : std::min(kHeadroom, request.max_tokens);
    try {
      needed = stores_.of(request.kv)->bytes_of(static_cast<int>(request.prompt.size()) + more);
    } catch (const std::exception&) {
      return true;  // a policy that cannot be: start() ends the job
    }
  }
  while (!active_.empty() && reserved(kHeadroom) + needed > stores_.row_budget())
    if (!rest_a_stalled_row()) return false;
  return true;
}

void Scheduler::let_in(Waiting waiting) {
  if (!waiting.rested) return start(waiting.ticket);
  const auto at = std::ranges::find_if(resting_, [&](const auto& row) { return row.get() == waiting.rested; });
  std::unique_ptr<ActiveRow> row = std::move(*at);
  resting_.erase(at);
  insert(std::move(row));
}

void Scheduler::start(const Ticket& ticket) {
  if (!mailbox_.remove(ticket)) return;
  const std::shared_ptr<Job::Impl>& job = ticket.job;
  job->has_begun = true;
  ++counters_.requests;
  counters_.queue_nanoseconds += (std::chrono::steady_clock::now() - job->queued_at) / std::chrono::nanoseconds(1);
  std::exception_ptr problem;
  std::unique_ptr<ActiveRow> row;
  try {
    translate_mx_errors("engine", [&] {
      row = make_row(ticket);
      const bool is_over = row->answer().is_over_at_once();
      if (row->answer().limit() > 0 && !is_over) return resume(*row, ticket);
      row->push(row->answer().end(is_over ? FinishReason::stop : FinishReason::length));
    });
  } catch (const std::exception& error) {
    log_.warning("a request failed: {}", error.what());
    problem = std::current_exception();
  }
  if (problem) {
    ++counters_.failed;
    return job->fail(std::move(problem));
  }
  if (!row->answer().is_finished()) return insert(std::move(row));
  ++counters_.finished;
  if (!row->record.empty()) records_->drop(row->record);
}

std::unique_ptr<ActiveRow> Scheduler::make_row(const Ticket& ticket) {
  const GenerationRequest& request = ticket.job->request;
  std::shared_ptr<RowStore> home = stores_.of(request.kv);
  need_budget(bundle_, request, home->store, stores_.row_budget());
  // An answer without a limit of its own ends where the memory does, if that is before the context.
  const int prompt = static_cast<int>(request.prompt.size());
  int limit = bundle_.context_length - prompt;
  if (request.max_tokens >= 0) limit = std::min(limit, request.max_tokens);
  limit = std::min(limit, longest_within(home->store, stores_.row_budget(), prompt + limit) - prompt);
  return std::make_unique<ActiveRow>(bundle_, ticket, std::move(home), limit);
}

void Scheduler::insert(std::unique_ptr<ActiveRow> row) {
  const auto at = std::ranges::find_if(active_, [&](const auto& each) { return row->job().comes_before(each->job()); });
  active_.insert(at, std::move(row));
}

// Bytes of the rows, once each has so many tokens more, or all that it will ever have.
std::size_t Scheduler::reserved(int headroom) const {
  std::size_t total = 0;
  for (const auto& row : active_)
    total += row->home().bytes_of(std::min(row->length() + headroom, std::max(row->length(), row->longest())));
  return total;
}

// The next step must fit: the last in the line gives way, a paused one first. One alone fits, or was not let in.
void Scheduler::make_room() {
  while (active_.size() > 1 && reserved(0) > stores_.row_budget())
    if (!rest_a_stalled_row()) preempt(*active_.back());
}

bool Scheduler::rest_a_stalled_row() {
  const auto last = std::find_if(active_.rbegin(), active_.rend(), [](const auto& row) { return row->stalled_since; });
  if (last == active_.rend()) return false;
  preempt(**last);
  return true;
}

// What it has computed goes to the prompt cache, within the bounds of that; what is not found there is computed again,
// with the same bits.
void Scheduler::preempt(ActiveRow& row) {
  ++counters_.preemptions;
  log_.debug("a row of {} tokens gives way", row.position());
  row.remember();
  sharing_.leave(row, active_);
  row.put_down();
  const auto at = std::ranges::find_if(active_, [&](const auto& each) { return each.get() == &row; });
  resting_.push_back(std::move(*at));
  active_.erase(at);
}

}  // namespace godwit::decode
