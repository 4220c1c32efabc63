#include "decode/active_row.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace godwit::decode {

ActiveRow::ActiveRow(const models::ModelBundle& bundle, Ticket ticket, std::shared_ptr<RowStore> home, int limit)
    : is_native_(bundle.mode == NumericMode::native),
      job_(std::move(ticket.job)),
      choice_(ticket.choice),
      home_(std::move(home)),
      runner_(bundle, home_->store),
      answer_(bundle, job_->request, job_->seed, choice_, limit),
      tokens_(job_->request.prompt) {
  timings_.prompt_tokens = static_cast<int>(tokens_.size());
}

int ActiveRow::next_span(int most, std::optional<int> stop) const {
  const int at = position(), prompt_end = timings_.prompt_tokens - 1;
  int span = std::min(left(), static_cast<int>(runner_.chunk_tokens()));
  if (!is_native_) return at < prompt_end ? std::min(span, prompt_end - at) : 1;
  span = std::min({span, most, kNativeChunk - at % kNativeChunk});
  if (stop && *stop > at) span = std::min(span, *stop - at);
  // Where the same prompt can go on from: its last token is computed anew.
  if (!home_->is_found_anywhere && at < prompt_end) span = std::min(span, prompt_end - at);
  return span;
}

StepPart ActiveRow::part(int span) {
  StepPart part{.runner = &runner_, .tokens = tokens().subspan(static_cast<std::size_t>(position()),
                                                               static_cast<std::size_t>(span))};
  using Wanted = StepPart::Wanted;
  if (span == left()) part.wanted = answer_.is_plain() ? Wanted::argmax : Wanted::logits;
  return part;
}

bool ActiveRow::is_at_kept_place() const {
  const int at = position(), last = timings_.prompt_tokens - 1;
  if (!is_native_) return at <= last;
  const bool is_behind_last = at == last + 1 && home_->is_found_anywhere;
  return at == last || is_behind_last || (at < last && at % kNativeChunk == 0);
}

void ActiveRow::start_from(cache::Row row) {
  runner_.start_from(std::move(row));
  started_at = position();
  if (!was_put_down_) timings_.cached_tokens = std::min(position(), timings_.prompt_tokens);
}

void ActiveRow::put_down() {
  runner_.start_from(home_->store.create());
  was_put_down_ = true;
  is_begun = false;
  leader = nullptr;
  started_at = 0;
}

void ActiveRow::remember() {
  if (!home_->cache || position() == 0) return;
  const auto held = tokens().first(static_cast<std::size_t>(position()));
  if (position() < timings_.prompt_tokens)
    home_->cache->keep_prompt(runner_.row(), held, job_->request.cache_salt);
  else
    home_->cache->keep_answer(runner_.row(), held, job_->request.cache_salt);
}

TokenEvent ActiveRow::take(AnswerBuilder::Choice choice) {
  const int id = choice.id;
  const std::size_t before = answer_.tokens().size();
  TokenEvent event = answer_.take(std::move(choice));
  if (answer_.tokens().size() > before) tokens_.push_back(id);
  timings_.completion_tokens = static_cast<int>(answer_.tokens().size());
  count_time();
  return event;
}

void ActiveRow::push(TokenEvent event) { job_->push(std::move(event), timings_); }

void ActiveRow::count_time() {
  const Clock::time_point now = Clock::now();
  const double seconds = std::chrono::duration<double>(now - mark_).count();
  (prompt_done_ ? timings_.completion_seconds : timings_.prompt_seconds) += seconds;
  timings_.steps = static_cast<int>(runner_.counts().steps);
  timings_.planned_steps = static_cast<int>(runner_.counts().planned);
  prompt_done_ = true;
  mark_ = now;
}

}  // namespace godwit::decode
