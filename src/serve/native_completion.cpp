// POST /completion and /infill in llama.cpp's own shapes.
#include <memory>

#include "serve/choice_stream.h"
#include "serve/completion_request.h"
#include "serve/endpoints.h"
#include "serve/infill_prompt.h"
#include "serve/json_fields.h"
#include "serve/openai_json.h"
#include "serve/request_error.h"

namespace godwit::serve {
namespace {

struct Asked {
  GenerationPlan plan = {};
  std::string prompt = {};
  bool stream = false;
};

// The fields have the names of /v1/completions but for these.
Asked read_completion(Json body, const ServedModel& model) {
  const JsonFields in(body);
  const auto limit = in.integer("n_predict", -2);
  const auto older = in.integer("max_tokens", -2);
  const std::int64_t most = limit.value_or(older.value_or(-1));
  const auto alternatives = in.integer("n_probs", 0, 20);
  for (const char* read : {"n_predict", "max_tokens"}) body.erase(read);
  if (most >= 0) body["max_tokens"] = most;
  body.erase("logprobs");
  body.erase("n_probs");
  if (alternatives.value_or(0) > 0) body["logprobs"] = *alternatives;
  if (in.integer("n", 1).value_or(1) > 1) unserved_field("n", "several answers; /v1/completions gives them");
  if (in.boolean("echo").value_or(false)) unserved_field("echo", "repeating the prompt");
  body.erase("n");
  CompletionRequest parsed = parse_completion_request(body, model);
  if (parsed.plan.size() != 1) unserved_field("prompt", "several prompts at once; /v1/completions takes them");
  if (most < 0) parsed.plan.common.max_tokens = -1;
  check_context(model, "prompt", parsed.plan.prompts[0].size(), parsed.plan.common.max_tokens);
  return {.plan = std::move(parsed.plan), .prompt = std::move(parsed.prompt_texts[0]), .stream = parsed.stream};
}

InfillText read_infill(const JsonFields& in) {
  InfillText text{.prefix = in.string("input_prefix").value_or(""),
               .suffix = in.string("input_suffix").value_or(""),
               .middle = in.string("prompt").value_or("")};
  const Json* others = in.array("input_extra");
  for (std::size_t i = 0; others && i < others->size(); ++i) {
    const JsonFields file((*others)[i], fmt::format("{}[{}]", in.path_of("input_extra"), i));
    text.others.push_back({file.string("filename").value_or("tmp"), file.string("text").value_or("")});
  }
  return text;
}

// One answer in the making.
class NativeCompletion {
 public:
  NativeCompletion(std::shared_ptr<const LoadedModel> loaded, Asked asked)
      : loaded_(std::move(loaded)),
        asked_(std::move(asked)),
        stream_(loaded_->generator, loaded_->model, asked_.plan) {}

  // Calls `take` with each piece, and returns what ends the answer, with all of its text when that was not taken.
  Json write(const std::function<void()>& waiting, const std::function<void(const Json&)>& take) {
    std::string text;
    Json probabilities = Json::array(), tokens = Json::array();
    Delta last;
    while (auto delta = stream_.next(waiting)) {
      Json piece = piece_json(*delta);
      if (take && (!delta->text.empty() || !delta->logprobs.empty())) take(piece);
      text += delta->text;
      for (Json& entry : piece["completion_probabilities"]) probabilities.push_back(std::move(entry));
      if (delta->id >= 0) tokens.push_back(delta->id);
      last = std::move(*delta);
    }
    Json end{{"index", 0}, {"content", take ? "" : text}, {"tokens", take ? Json::array() : std::move(tokens)}};
    if (!take && asked_.plan.common.logprobs) end["completion_probabilities"] = std::move(probabilities);
    finish(end, last);
    return end;
  }

 private:
  Json piece_json(const Delta& delta) const {
    Json piece{{"index", 0},
               {"content", delta.text},
               {"tokens", delta.id >= 0 ? Json::array({delta.id}) : Json::array()},
               {"stop", false},
               {"id_slot", -1}};
    for (const LogprobEntry& entry : delta.logprobs) {
      Json json = chat_logprob_json(entry, loaded_->model.need_tokenizer());
      json["id"] = entry.id;
      for (std::size_t i = 0; i < entry.top.size(); ++i) json["top_logprobs"][i]["id"] = entry.top[i].id;
      piece["completion_probabilities"].push_back(std::move(json));
    }
    return piece;
  }

  void finish(Json& end, const Delta& last) const {
    const Usage usage = stream_.usage();
    const bool is_limit = last.finish == decode::FinishReason::length;
    end["id_slot"] = -1;
    end["stop"] = true;
    end["model"] = loaded_->model.id;
    end["prompt"] = asked_.prompt;
    end["stop_type"] = last.stop_match ? "word" : is_limit ? "limit" : "eos";
    end["stopping_word"] = last.stop_match.value_or("");
    end["truncated"] = false;
    end["tokens_predicted"] = usage.completion_tokens;
    end["tokens_evaluated"] = usage.prompt_tokens;
    end["tokens_cached"] = usage.cached_tokens;
    end["timings"] = timings_json(stream_.timings());
    if (const auto seed = stream_.seed()) end["seed"] = *seed;
  }

  std::shared_ptr<const LoadedModel> loaded_;
  Asked asked_;
  ChoiceStream stream_;
};

Response answer(std::shared_ptr<const LoadedModel> loaded, Asked asked, const Request& request) {
  const bool is_stream = asked.stream;
  auto completion = std::make_shared<NativeCompletion>(std::move(loaded), std::move(asked));
  if (!is_stream) return Response::json(completion->write(request.check_alive, nullptr));
  return Response::event_stream([completion, &request](EventSink& sink) {
    const auto waiting = [&] {
      request.check_alive();
      sink.idle();
    };
    sink.send(dump_json(completion->write(waiting, [&](const Json& piece) { sink.send(dump_json(piece)); })));
  });
}

}  // namespace

Response native_completion(const Request& request, Context& context) {
  const Json body = parse_body(request.body);
  auto loaded = context.models.open(model_name(body), request.check_alive);
  Asked asked = read_completion(body, loaded->model);
  return answer(std::move(loaded), std::move(asked), request);
}

Response infill(const Request& request, Context& context) {
  Json body = parse_body(request.body);
  auto loaded = context.models.open(model_name(body), request.check_alive);
  const text::Tokenizer& tokenizer = loaded->model.need_tokenizer();
  const auto gap = FillInMiddle::of(tokenizer);
  if (!gap)
    throw RequestError(ErrorCode::unsupported,
                       fmt::format("the model '{}' has no tokens to fill in the middle of a text", loaded->model.id),
                       {.param = "model", .code = "infill_not_supported", .status = 501});
  body["prompt"] = infill_prompt(read_infill(JsonFields(body)), *gap, tokenizer);
  Asked asked = read_completion(std::move(body), loaded->model);
  for (const int id : infill_ends(tokenizer)) asked.plan.common.stop_token_ids.push_back(id);
  return answer(std::move(loaded), std::move(asked), request);
}

Response rerank(const Request& request, Context&) {
  static_cast<void>(parse_body(request.body));
  throw RequestError(ErrorCode::unsupported, "no model that ranks documents is served here",
                     {.param = "model", .code = "rerank_not_supported", .status = 501});
}

}  // namespace godwit::serve
