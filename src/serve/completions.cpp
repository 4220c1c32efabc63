// POST /v1/completions. Parse -> submit -> answer, on a connection thread.
#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <vector>

#include "serve/choice_stream.h"
#include "serve/completion_request.h"
#include "serve/endpoints.h"
#include "serve/json_fields.h"
#include "serve/openai_json.h"
#include "serve/prompt_logprobs.h"
#include "serve/structured_output.h"
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

  bool wants_logprobs() const { return request_.shows_logprobs; }
  std::size_t count() const { return static_cast<std::size_t>(request_.plan.size()); }
  const CompletionRequest& request() const { return request_; }
  bool includes_usage() const { return request_.include_usage; }
  Json frame(Json choices) const { return answer_json(head_, "text_completion", std::move(choices)); }
  void add_extras_to(Json& json) const { add_extras(json, answer_); }

 private:
  // The same for every choice of a prompt, so it is computed once.
  const std::vector<LogprobEntry>& entries_of(std::size_t prompt) {
    PromptEntries& known = prompt_entries_[prompt];
    if (known.uses++ == 0)
      known.entries = prompt_logprobs(loaded_->generator, loaded_->model, request_.plan.prompts[prompt],
                                      request_.plan.common.top_logprobs);
    return known.entries;
  }

  void add_prompt(std::size_t prompt, LegacyLogprobs& into) {
    const std::size_t most = count_code_points(request_.prompt_texts[prompt]);
    const std::vector<LogprobEntry>& entries = entries_of(prompt);
    for (std::size_t i = 0; i < entries.size(); ++i)
      into.add(entries[i], std::min(entries[i].text_offset, most), /*is_first_of_prompt=*/i == 0);
    if (prompt_entries_[prompt].uses == request_.plan.choices) prompt_entries_.erase(prompt);
  }

  struct PromptEntries {
    std::vector<LogprobEntry> entries;
    int uses = 0;
  };

  CompletionRequest request_;
  std::shared_ptr<const LoadedModel> loaded_;
  AnswerHead head_;
  ChoiceStream answer_;
  std::map<std::size_t, PromptEntries> prompt_entries_;
};

void append(Json& target, const Json& more) {
  for (const auto& [key, values] : more.items())
    for (const Json& value : values) target[key].push_back(value);
}

// What one choice of a whole answer has come to.
struct Choice {
  std::string text;
  Json logprobs = nullptr;
  std::vector<int> ids = {};
  double sum = 0;  // of the log-probabilities of its visible tokens
  int tokens = 0;
  decode::FinishReason finish = decode::FinishReason::none;

  double mean() const { return tokens > 0 ? sum / tokens : -std::numeric_limits<double>::infinity(); }

  void add(Completion::Piece piece) {
    text += piece.text;
    if (logprobs.is_null())
      logprobs = std::move(piece.logprobs);
    else
      append(logprobs, piece.logprobs);
    for (const LogprobEntry& entry : piece.delta.logprobs) sum += entry.logprob;
    tokens += static_cast<int>(piece.delta.logprobs.size());
    if (piece.delta.id >= 0) ids.push_back(piece.delta.id);
    finish = piece.delta.finish;
  }
};

// Leaves the best n answers of each prompt, the best first; of equal ones the earlier.
std::vector<Choice> best(std::vector<Choice> made, const CompletionRequest& request) {
  const int tried = request.plan.choices, wanted = request.choices;
  if (tried == wanted) return made;
  std::vector<Choice> out;
  for (auto first = made.begin(); first != made.end(); first += tried) {
    std::stable_sort(first, first + tried,
                     [](const Choice& a, const Choice& b) { return a.mean() > b.mean(); });
    std::move(first, first + wanted, std::back_inserter(out));
  }
  return out;
}

void add_ids(Json& json, const CompletionRequest& request, int index, const std::vector<int>& ids,
             bool with_prompt) {
  if (!request.returns_token_ids) return;
  json["token_ids"] = ids;
  if (with_prompt)
    json["prompt_token_ids"] = request.plan.prompts[static_cast<std::size_t>(index / request.choices)];
}

Response whole(Completion& completion, const Request& request) {
  std::vector<Choice> made(completion.count());
  while (auto piece = completion.next(request.check_alive)) {
    Choice& choice = made.at(static_cast<std::size_t>(piece->delta.index));
    choice.add(std::move(*piece));
  }
  made = best(std::move(made), completion.request());
  Json choices = Json::array();
  for (int index = 0; Choice & choice : made) {
    Json json = completion_choice_json(index, choice.text, std::move(choice.logprobs), choice.finish);
    add_ids(json, completion.request(), index++, choice.ids, /*with_prompt=*/true);
    choices.push_back(std::move(json));
  }
  Json json = completion.frame(std::move(choices));
  completion.add_extras_to(json);
  return Response::json(json);
}

void send_chunk(EventSink& sink, const Completion& completion, Json choice) {
  Json chunk = completion.frame(Json::array({std::move(choice)}));
  if (completion.includes_usage()) chunk["usage"] = nullptr;
  sink.send(dump_json(chunk));
}

void send_piece(EventSink& sink, const Completion& completion, Completion::Piece piece) {
  constexpr auto kGoesOn = decode::FinishReason::none;
  const Delta& delta = piece.delta;
  const bool has_tokens = piece.logprobs.is_object() && !piece.logprobs["tokens"].empty();
  const bool has_ids = completion.request().returns_token_ids && (delta.id >= 0 || delta.is_first);
  if (!piece.text.empty() || has_tokens || has_ids) {
    Json json = completion_choice_json(delta.index, piece.text, std::move(piece.logprobs), kGoesOn);
    const std::vector<int> ids = delta.id >= 0 ? std::vector{delta.id} : std::vector<int>();
    add_ids(json, completion.request(), delta.index, ids, delta.is_first);
    send_chunk(sink, completion, std::move(json));
  }
  if (delta.finish != kGoesOn)
    send_chunk(sink, completion, completion_choice_json(delta.index, "", nullptr, delta.finish));
}

void stream(Completion& completion, const Request& request, EventSink& sink) {
  const auto waiting = [&] {
    request.check_alive();
    sink.idle();
  };
  while (auto piece = completion.next(waiting)) send_piece(sink, completion, std::move(*piece));
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
  const auto grammar = parsed.grammar;
  auto completion = std::make_shared<Completion>(std::move(parsed), std::move(loaded), context.server.now_unix());
  Response response = is_stream ? Response::event_stream([completion, &request](EventSink& sink) {
    stream(*completion, request, sink);
  })
                                : whole(*completion, request);
  if (grammar) add_notes(*grammar, response.headers);
  return response;
}

}  // namespace godwit::serve
