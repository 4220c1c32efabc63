#include "serve/observed_models.h"

#include <algorithm>

#include "serve/request_error.h"

namespace godwit::serve {
namespace {

using Clock = RequestRecord::Clock;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

std::string_view name_of(decode::FinishReason finish) {
  switch (finish) {
    case decode::FinishReason::length:
      return "length";
    case decode::FinishReason::cancelled:
      return "cancelled";
    case decode::FinishReason::stop:
    case decode::FinishReason::none:
      break;
  }
  return "stop";
}

// One prompt and its choices.
class ObservedSource final : public TokenSource {
 public:
  ObservedSource(std::unique_ptr<TokenSource> source, const decode::GenerationRequest& request,
                 RequestRecord& record, ServerMetrics& metrics, std::function<bool()> draining)
      : source_(std::move(source)),
        draining_(std::move(draining)),
        record_(record),
        metrics_(metrics),
        inter_token_(metrics.inter_token.with({record.model})),
        choices_(static_cast<std::size_t>(request.choices)),
        first_answer_(record.answers.size()) {
    ++record_.submitted;
    record_.prompt_tokens += static_cast<int>(request.prompt.size());
    if (record_.keeps_text) record_.answers.resize(first_answer_ + choices_.size());
  }
  ~ObservedSource() override { close(); }

  std::optional<decode::TokenEvent> next_for(double seconds, bool& timed_out) override {
    if (!source_->has_begun() && draining_())
      throw RequestError(ErrorCode::overloaded, "the server is shutting down",
                         {.code = "draining", .status = 503});
    try {
      auto event = source_->next_for(seconds, timed_out);
      if (event) note(*event);
      return event;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::cancelled) metrics_.row_failures.with({record_.model}).add();
      throw;
    }
  }
  void cancel(int choice) override { source_->cancel(choice); }
  decode::Timings timings() const override { return source_->timings(); }
  std::uint64_t seed() const override { return source_->seed(); }
  bool has_begun() const override { return source_->has_begun(); }

 private:
  struct Choice {
    std::optional<Clock::time_point> last_token;
  };

  void note(const decode::TokenEvent& event) {
    const auto now = Clock::now();
    const auto index = static_cast<std::size_t>(event.choice);
    if (event.id >= 0) {
      Choice& choice = choices_.at(index);
      if (choice.last_token) inter_token_.observe(seconds_between(*choice.last_token, now));
      choice.last_token = now;
      ++record_.generated_tokens;
    }
    if (!first_event_) {
      first_event_ = now;
      if (record_.first_token_seconds < 0)
        record_.first_token_seconds = seconds_between(record_.arrived, now);
    }
    if (record_.keeps_text) record_.answers.at(first_answer_ + index) += event.text;
    if (event.finish == decode::FinishReason::none) return;
    record_.finish = name_of(event.finish);
    metrics_.finished.with({record_.model, record_.finish}).add();
  }

  // The engine's own seconds; what it does not say of the time before the first token was spent in the queue.
  void close() {
    const decode::Timings timings = source_->timings();
    record_.cached_tokens += timings.cached_tokens;
    record_.prefill_seconds += timings.prompt_seconds;
    record_.decode_seconds += timings.completion_seconds;
    const double waited = seconds_between(submitted_, first_event_.value_or(Clock::now()));
    record_.queue_seconds += std::max(0.0, waited - timings.prompt_seconds);
  }

  std::unique_ptr<TokenSource> source_;
  std::function<bool()> draining_;
  RequestRecord& record_;
  ServerMetrics& metrics_;
  Histogram& inter_token_;
  std::vector<Choice> choices_;
  std::size_t first_answer_;
  const Clock::time_point submitted_ = Clock::now();
  std::optional<Clock::time_point> first_event_;
};

// A model that is held open, with a generator that is watched.
class Observed final : public Generator {
 public:
  Observed(std::shared_ptr<const LoadedModel> loaded, RequestRecord& record, ServerMetrics& metrics,
           std::function<bool()> draining)
      : loaded_(std::move(loaded)),
        record_(record),
        metrics_(metrics),
        draining_(std::move(draining)),
        face_{loaded_->model, *this, loaded_->embedder} {}

  std::unique_ptr<TokenSource> submit(decode::GenerationRequest request) override {
    if (const auto stats = loaded_->generator.stats(); stats && record_.rows_at_start < 0)
      record_.rows_at_start = stats->rows_running;
    auto source = loaded_->generator.submit(request);
    return std::make_unique<ObservedSource>(std::move(source), request, record_, metrics_, draining_);
  }
  std::vector<float> logits(const std::vector<int>& tokens) override {
    return loaded_->generator.logits(tokens);
  }
  std::optional<decode::EngineStats> stats() const override { return loaded_->generator.stats(); }
  std::optional<std::uint64_t> forget_prompts(bool disk_too) override {
    return loaded_->generator.forget_prompts(disk_too);
  }
  const LoadedModel& face() const { return face_; }

 private:
  std::shared_ptr<const LoadedModel> loaded_;
  RequestRecord& record_;
  ServerMetrics& metrics_;
  std::function<bool()> draining_;
  LoadedModel face_;
};

}  // namespace

std::shared_ptr<const LoadedModel> ObservedModels::open(std::string_view name,
                                                        const std::function<void()>& waiting) {
  auto loaded = models_.open(name, waiting);
  record_.model = loaded->model.id;
  const auto observed = std::make_shared<Observed>(std::move(loaded), record_, metrics_, draining_);
  return {observed, &observed->face()};
}

}  // namespace godwit::serve
