#include "cli/answer.h"

#include <optional>

#include "cli/model_flags.h"
#include "models/model_bundle.h"

namespace godwit::cli {
namespace {

constexpr double kLookSeconds = 0.05;  // how often Ctrl-C is looked for while the engine works

std::string_view name_of(decode::FinishReason reason) {
  switch (reason) {
    case decode::FinishReason::stop:
      return "stop";
    case decode::FinishReason::length:
      return "length";
    case decode::FinishReason::cancelled:
      return "cancelled";
    case decode::FinishReason::none:
      break;
  }
  return "none";
}

double per_second(int count, double seconds) { return seconds > 0 ? count / seconds : 0; }

Json json_of(const decode::TokenLogprob& entry, const models::ModelBundle& model) {
  Json json = {{"id", entry.id}};
  if (model.tokenizer && model.tokenizer->token_of(entry.id)) {
    const std::string bytes = model.tokenizer->bytes_of(entry.id);
    json["token"] = bytes;  // half a character shows as U+FFFD; "bytes" is exact
    json["bytes"] = Json::array();
    for (const char byte : bytes) json["bytes"].push_back(static_cast<unsigned char>(byte));
  }
  json["logprob"] = entry.logprob;
  return json;
}

Json json_of(const decode::Timings& timings) {
  // The first answer token comes out of the prompt's pass, so the rest took completion_seconds.
  const int later_tokens = std::max(timings.completion_tokens - 1, 0);
  const int computed = timings.prompt_tokens - timings.cached_tokens;
  return {{"prompt_tokens", timings.prompt_tokens},
          {"cached_tokens", timings.cached_tokens},
          {"completion_tokens", timings.completion_tokens},
          {"prompt_seconds", timings.prompt_seconds},
          {"completion_seconds", timings.completion_seconds},
          {"prompt_tokens_per_second", per_second(computed, timings.prompt_seconds)},
          {"completion_tokens_per_second", per_second(later_tokens, timings.completion_seconds)},
          {"steps", timings.steps},
          {"planned_steps", timings.planned_steps}};
}

}  // namespace

Answer follow(decode::Engine& engine, decode::GenerationRequest request, InterruptGuard& interrupts,
              const std::function<void(std::string_view)>& show) {
  const bool keeps_events = request.logprobs;
  decode::Job job = engine.submit(std::move(request));
  std::optional<InterruptGuard::Impatience> impatience;
  Answer answer;
  answer.seed = job.seed();
  while (answer.finish == decode::FinishReason::none) {
    bool timed_out = false;
    std::optional<decode::TokenEvent> event = job.next_for(kLookSeconds, timed_out);
    if (interrupts.take()) {
      job.cancel();
      impatience.emplace();
    }
    if (!event) continue;
    if (!event->text.empty()) show(event->text);
    answer.text += event->text;
    answer.finish = event->finish;
    answer.stop_match = event->stop_match;
    if (event->id < 0) continue;
    answer.tokens.push_back(event->id);
    if (keeps_events) answer.events.push_back(std::move(*event));
  }
  answer.timings = job.timings();
  return answer;
}

Json to_json(const Answer& answer, const models::ModelBundle& model, bool logprobs) {
  Json json;
  json["text"] = model.tokenizer ? Json(answer.text) : Json();
  json["tokens"] = answer.tokens;
  json["prompt_tokens"] = answer.timings.prompt_tokens;
  json["finish_reason"] = name_of(answer.finish);
  if (answer.stop_match) json["stop"] = *answer.stop_match;
  json["timings"] = json_of(answer.timings);
  json["seed"] = answer.seed;
  json["math"] = name_of(model.mode);
  json["activations"] = activations_of(model);
  if (!logprobs) return json;
  json["logprobs"] = Json::array();
  for (const decode::TokenEvent& event : answer.events) {
    Json entry = json_of(*event.logprob, model);
    entry["top_logprobs"] = Json::array();
    for (const decode::TokenLogprob& top : event.top_logprobs)
      entry["top_logprobs"].push_back(json_of(top, model));
    json["logprobs"].push_back(std::move(entry));
  }
  return json;
}

}  // namespace godwit::cli
