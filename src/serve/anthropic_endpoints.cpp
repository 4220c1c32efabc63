// POST /v1/messages and /v1/messages/count_tokens: Anthropic's API.
#include <memory>

#include "serve/anthropic_events.h"
#include "serve/anthropic_request.h"
#include "serve/endpoints.h"
#include "serve/json_fields.h"
#include "serve/openai_json.h"
#include "serve/structured_output.h"

namespace godwit::serve {
namespace {

// One message in the making.
class MessageAnswer {
 public:
  MessageAnswer(std::shared_ptr<const LoadedModel> loaded, AnthropicRequest asked)
      : asked_(std::move(asked)), answer_(std::move(loaded), asked_.turn), id_(random_id("msg_")) {}

  void add_notes_to(Response& response) const {
    if (answer_.grammar()) add_notes(*answer_.grammar(), response.headers);
  }

  void write(const AnthropicEvents::Emit& emit, const std::function<void()>& waiting) {
    AnthropicEvents events(emit);
    ChatDelta last;
    bool has_started = false;
    // The message starts with its first token: what the prompt cache had is known by then.
    while (auto delta = answer_.next(waiting)) {
      if (!std::exchange(has_started, true)) start(events, emit);
      for (const text::TurnPiece& piece : delta->pieces)
        if (!asked_.only_fills_cache) events.add(piece);
      last = std::move(*delta);
    }
    events.finish(stop_reason(last), last.finish == ChatFinish::stop ? last.stop_match : std::nullopt, usage());
  }

 private:
  void start(AnthropicEvents& events, const AnthropicEvents::Emit& emit) {
    events.start(id_, answer_.model().id, usage());
    emit({{"type", "ping"}});
  }

  Usage usage() const {
    Usage usage = answer_.usage();
    if (asked_.only_fills_cache) usage.completion_tokens = 0;
    return usage;
  }

  std::string stop_reason(const ChatDelta& last) const {
    if (asked_.only_fills_cache) return "max_tokens";
    if (last.finish == ChatFinish::tool_calls) return "tool_use";
    if (last.finish == ChatFinish::stop) return last.stop_match ? "stop_sequence" : "end_turn";
    const bool is_context_full = answer_.usage().completion_tokens < asked_.turn.common.max_tokens;
    return is_context_full ? "model_context_window_exceeded" : "max_tokens";
  }

  AnthropicRequest asked_;
  ChatAnswer answer_;
  std::string id_;
};

void log_notes(const AnthropicRequest& asked, const Request& request, const Context& context) {
  for (const std::string& note : asked.notes) context.log.info("{}: {}", request.id, note);
}

Response whole(MessageAnswer& answer, const Request& request) {
  AnthropicMessage message;
  answer.write([&](const Json& event) { message.add(event); }, request.check_alive);
  return Response::json(message.json());
}

void stream(MessageAnswer& answer, const Request& request, EventSink& sink) {
  const auto waiting = [&] {
    request.check_alive();
    sink.idle();
  };
  const auto send = [&](const Json& event) {
    const auto& type = event["type"].get_ref<const std::string&>();
    sink.send(type, dump_json(event));
    // Before the message has started a client may not expect a named event.
    if (type == "message_start") sink.set_keep_alive("event: ping\ndata: {\"type\":\"ping\"}\n\n");
  };
  answer.write(send, waiting);
}

}  // namespace

Response messages(const Request& request, Context& context) {
  const Json body = parse_body(request.body);
  auto loaded = context.models.open(model_name(body), request.check_alive);
  AnthropicRequest asked = parse_anthropic_request(body, loaded->model);
  log_notes(asked, request, context);
  const bool is_stream = asked.stream;
  auto answer = std::make_shared<MessageAnswer>(std::move(loaded), std::move(asked));
  Response response =
      is_stream ? Response::event_stream([answer, &request](EventSink& sink) { stream(*answer, request, sink); })
                : whole(*answer, request);
  answer->add_notes_to(response);
  return response;
}

Response count_message_tokens(const Request& request, Context& context) {
  const Json body = parse_body(request.body);
  const auto loaded = context.models.open(model_name(body), request.check_alive);
  const AnthropicRequest asked = parse_anthropic_request(body, loaded->model);
  log_notes(asked, request, context);
  return Response::json({{"input_tokens", render_turn(asked.turn, loaded->model).size()}});
}

}  // namespace godwit::serve
