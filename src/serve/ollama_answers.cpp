// POST /api/chat and /api/generate: Ollama's API. Lines of JSON unless the request says that it wants one object.
#include <chrono>
#include <memory>
#include <utility>

#include "serve/endpoints.h"
#include "serve/ollama_json.h"
#include "serve/ollama_request.h"
#include "serve/request_error.h"
#include "serve/structured_output.h"

namespace godwit::serve {
namespace {

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// The plan of a prompt that no template writes.
GenerationPlan raw_plan(const OllamaRequest& asked, const ServedModel& model) {
  check_text_size(model, "prompt", asked.raw_prompt->size());
  GenerationPlan plan{.prompts = {model.need_tokenizer().encode(*asked.raw_prompt)}, .common = asked.turn.common};
  if (plan.prompts[0].empty()) bad_field("prompt", "is empty");
  if (asked.turn.output)
    plan.common.constraint = constraint_of(model, compile_output(model, *asked.turn.output));
  check_context(model, "prompt", plan.prompts[0].size(), plan.common.max_tokens);
  return plan;
}

// One answer in the making: a chat's, or the plain text behind a raw prompt.
class OllamaAnswer {
 public:
  OllamaAnswer(std::shared_ptr<const LoadedModel> loaded, OllamaRequest asked, OllamaHead head, Stopwatch watch)
      : loaded_(std::move(loaded)), head_(std::move(head)), watch_(watch), load_seconds_(watch.seconds()) {
    if (asked.raw_prompt) {
      raw_.emplace(loaded_->generator, loaded_->model, raw_plan(asked, loaded_->model));
    } else {
      chat_.emplace(loaded_, asked.turn);
    }
  }

  // Calls `take(part, end)` for each line; the last one has an end and nothing else.
  template <typename Take>
  void write(const std::function<void()>& waiting, Take take) {
    OllamaParts parts;
    std::optional<ChatFinish> finish;
    while (auto delta = next(waiting)) {
      finish = delta->finish;
      const OllamaPart part = parts.add(std::move(*delta));
      if (!part.is_empty()) take(part, std::nullopt);
    }
    take(OllamaPart{}, std::optional(end(finish.value_or(ChatFinish::stop))));
  }

  void add_notes_to(Response& response) const {
    if (chat_ && chat_->grammar()) add_notes(*chat_->grammar(), response.headers);
  }
  Json line(const OllamaPart& part) const { return ollama_line(head_, part, loaded_->model.tokenizer); }

 private:
  std::optional<ChatDelta> next(const std::function<void()>& waiting) {
    if (chat_) return chat_->next(waiting);
    std::optional<Delta> delta = raw_->next(waiting);
    if (!delta) return std::nullopt;
    ChatDelta out{.logprobs = std::move(delta->logprobs), .stop_match = std::move(delta->stop_match)};
    if (!delta->text.empty()) out.pieces.push_back({.text = std::move(delta->text)});
    if (delta->finish != decode::FinishReason::none)
      out.finish = delta->finish == decode::FinishReason::length ? ChatFinish::length : ChatFinish::stop;
    return out;
  }

  OllamaEnd end(ChatFinish finish) const {
    return {.reason = finish == ChatFinish::length ? "length" : "stop",
            .usage = chat_ ? chat_->usage() : raw_->usage(),
            .timings = chat_ ? chat_->timings() : raw_->timings(),
            .total_seconds = watch_.seconds(),
            .load_seconds = load_seconds_};
  }

  std::shared_ptr<const LoadedModel> loaded_;
  OllamaHead head_;
  Stopwatch watch_;
  double load_seconds_;
  std::optional<ChatAnswer> chat_;
  std::optional<ChoiceStream> raw_;
};

Response one_line(Json line, bool is_stream) {
  if (!is_stream) return Response::json(line);
  return Response::line_stream([line = std::move(line)](EventSink& sink) { sink.send(dump_json(line)); });
}

// A request without a prompt is there for the model: it is loaded by now.
Response loaded_answer(const OllamaHead& head, const OllamaRequest& asked, double seconds) {
  Json line = ollama_line(head, {}, nullptr);
  finish_ollama_line(line, {.reason = "load", .total_seconds = seconds, .load_seconds = seconds});
  return one_line(std::move(line), asked.stream);
}

Response whole(OllamaAnswer& answer, const Request& request) {
  OllamaPart all;
  std::optional<OllamaEnd> end;
  answer.write(request.check_alive, [&](OllamaPart part, std::optional<OllamaEnd> last) {
    all.append(std::move(part));
    if (last) end = std::move(last);
  });
  Json line = answer.line(all);
  finish_ollama_line(line, end.value_or(OllamaEnd{.reason = "stop"}));
  return Response::json(line);
}

void stream(OllamaAnswer& answer, const Request& request, EventSink& sink) {
  const auto waiting = [&] {
    request.check_alive();
    sink.idle();
  };
  answer.write(waiting, [&](const OllamaPart& part, const std::optional<OllamaEnd>& last) {
    Json line = answer.line(part);
    if (last) finish_ollama_line(line, *last);
    sink.send(dump_json(line));
  });
}

// An empty request with a keep_alive of 0 only lets go of a model: nothing is loaded for it.
Response unload_answer(const Json& body, Context& context, OllamaShape shape) {
  const ModelEntry entry = find_ollama_entry(ollama_model_name(body), context);
  static_cast<void>(context.models.unload(entry.id));
  Json line = ollama_line({.shape = shape, .model = entry.id, .created_at = rfc3339(context.server.now_unix())}, {}, nullptr);
  finish_ollama_line(line, {.reason = "unload"});
  return one_line(std::move(line), JsonFields(body).boolean("stream").value_or(true));
}

Response answer_ollama(const Request& request, Context& context, OllamaShape shape) {
  const Stopwatch watch;
  const Json body = parse_body(request.body);
  if (only_unloads(body, shape == OllamaShape::chat ? "messages" : "prompt")) return unload_answer(body, context, shape);
  auto loaded = context.models.open(ollama_model_name(body), request.check_alive);
  OllamaRequest asked =
      shape == OllamaShape::chat ? parse_ollama_chat(body, loaded->model) : parse_ollama_generate(body, loaded->model);
  OllamaHead head{.shape = shape, .model = loaded->model.id, .created_at = rfc3339(context.server.now_unix())};
  if (asked.asks_nothing) return loaded_answer(head, asked, watch.seconds());
  if (asked.keep_alive == 0) context.models.unload(loaded->model.id);  // once this answer has been given
  const bool is_stream = asked.stream;
  auto answer = std::make_shared<OllamaAnswer>(std::move(loaded), std::move(asked), std::move(head), watch);
  Response response = is_stream ? Response::line_stream([answer, &request](EventSink& sink) {
    stream(*answer, request, sink);
  })
                                : whole(*answer, request);
  answer->add_notes_to(response);
  return response;
}

}  // namespace

Response ollama_chat(const Request& request, Context& context) {
  return answer_ollama(request, context, OllamaShape::chat);
}

Response ollama_generate(const Request& request, Context& context) {
  return answer_ollama(request, context, OllamaShape::generate);
}

}  // namespace godwit::serve
