// POST /v1/completions. Parse -> submit -> answer, on a connection thread.
#include <memory>
#include <vector>

#include "serve/choice_stream.h"
#include "serve/completion_request.h"
#include "serve/endpoints.h"
#include "serve/json_fields.h"
#include "serve/openai_json.h"
#include "serve/prompt_logprobs.h"
#include "serve/token_text.h"

namespace godwit::serve {
namespace {

// A completion in the making: the deltas of ChoiceStream with the echoed prompt in front of each choice.
class Completion {
 public:
  Completion(CompletionRequest request, std::shared_ptr<const LoadedModel> loaded, std::int64_t now)
      : request_(std::move(request)),
        loaded_(std::move(loaded)),
        head_{random_id("cmpl-"), now, loaded_->model.id, loaded_->model.fingerprint},
        answer_(loaded_->generator, loaded_->model, request_.plan) {}

  struct Piece {
    std::string text;
    Json logprobs;  // null when not asked for
    Delta delta;
  };

  std::optional<Piece> next(const std::function<void()>& waiting) {
    auto delta = answer_.next(waiting);
    if (!delta) return std::nullopt;
    const std::size_t prompt = request_.plan.prompt_of(delta->index);
    LegacyLogprobs logprobs(loaded_->model.need_tokenizer());
    std::string text;
    if (delta->is_first && request_.echo) {
      text = request_.prompt_texts[prompt];
      if (wants_logprobs()) add_prompt(prompt, logprobs);
    }
    text += delta->text;
    const std::size_t base = count_code_points(request_.prompt_texts[prompt]);
    for (const auto& entry : delta->logprobs) logprobs.add(entry, base + entry.text_offset);
    return Piece{std::move(text), wants_logprobs() ? logprobs.json() : Json(nullptr), std::move(*delta)};
  }

  bool wants_logprobs() const { return request_.plan.common.logprobs; }
  std::size_t count() const { return static_cast<std::size_t>(request_.plan.size()); }
  bool includes_usage() const { return request_.include_usage; }
  Json frame(Json choices) const { return answer_json(head_, "text_completion", std::move(choices)); }
  void add_extras_to(Json& json) const { add_extras(json, answer_); }

 private:
  void add_prompt(std::size_t prompt, LegacyLogprobs& into) {
    const std::vector<int>& ids = request_.plan.prompts[prompt];
    // The same for every choice of a prompt, so it is computed once.
    if (prompt_entries_.empty() || prompt_entries_of_ != prompt) {
      prompt_entries_ =
          prompt_logprobs(loaded_->generator, loaded_->model, ids, request_.plan.common.top_logprobs);
      prompt_entries_of_ = prompt;
    }
    const std::size_t most = count_code_points(request_.prompt_texts[prompt]);
    for (std::size_t i = 0; i < ids.size(); ++i)
      into.add(prompt_entries_[i], std::min(prompt_entries_[i].text_offset, most),
               /*is_first_of_prompt=*/i == 0);
  }

  CompletionRequest request_;
  std::shared_ptr<const LoadedModel> loaded_;
  AnswerHead head_;
  ChoiceStream answer_;
  std::vector<LogprobEntry> prompt_entries_;
  std::size_t prompt_entries_of_ = 0;
};

void append(Json& target, const Json& more) {
  for (const auto& [key, values] : more.items())
    for (const Json& value : values) target[key].push_back(value);
}

// What one choice of a whole answer has come to.
struct Choice {
  std::string text;
  Json logprobs = nullptr;
  decode::FinishReason finish = decode::FinishReason::none;
};

Response whole(Completion& completion, const Request& request) {
  std::vector<Choice> made(completion.count());
  while (auto piece = completion.next(request.check_alive)) {
    Choice& choice = made.at(static_cast<std::size_t>(piece->delta.index));
    choice.text += piece->text;
    if (choice.logprobs.is_null())
      choice.logprobs = std::move(piece->logprobs);
    else
      append(choice.logprobs, piece->logprobs);
    choice.finish = piece->delta.finish;
  }
  Json choices = Json::array();
  for (std::size_t i = 0; i < made.size(); ++i)
    choices.push_back(completion_choice_json(static_cast<int>(i), made[i].text, std::move(made[i].logprobs), made[i].finish));
  Json json = completion.frame(std::move(choices));
  completion.add_extras_to(json);
  return Response::json(json);
}

void send_chunk(EventSink& sink, const Completion& completion, Json choice) {
  Json chunk = completion.frame(Json::array({std::move(choice)}));
  if (completion.includes_usage()) chunk["usage"] = nullptr;
  sink.send(dump_json(chunk));
}

void stream(Completion& completion, const Request& request, EventSink& sink) {
  const auto waiting = [&] {
    request.check_alive();
    sink.idle();
  };
  constexpr auto kGoesOn = decode::FinishReason::none;
  while (auto piece = completion.next(waiting)) {
    const bool has_tokens = piece->logprobs.is_object() && !piece->logprobs["tokens"].empty();
    if (!piece->text.empty() || has_tokens)
      send_chunk(
          sink, completion,
          completion_choice_json(piece->delta.index, piece->text, std::move(piece->logprobs), kGoesOn));
    if (piece->delta.finish != kGoesOn)
      send_chunk(sink, completion,
                 completion_choice_json(piece->delta.index, "", nullptr, piece->delta.finish));
  }
  if (completion.includes_usage()) {
    Json chunk = completion.frame(Json::array());
    completion.add_extras_to(chunk);
    sink.send(dump_json(chunk));
  }
  sink.send("[DONE]");
}

}  // namespace

Response completions(const Request& request, Context& context) {
  const Json body = parse_body(request.body);
  auto loaded = context.models.open(model_name(body), request.check_alive);
  CompletionRequest parsed = parse_completion_request(body, loaded->model);
  const bool is_stream = parsed.stream;
  auto completion = std::make_shared<Completion>(std::move(parsed), std::move(loaded), context.now_unix());
  if (!is_stream) return whole(*completion, request);
  return Response::event_stream(
      [completion, &request](EventSink& sink) { stream(*completion, request, sink); });
}

}  // namespace godwit::serve
