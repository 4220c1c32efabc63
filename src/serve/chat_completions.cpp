// POST /v1/chat/completions. Parse -> submit -> answer, on a connection thread.
#include <algorithm>
#include <memory>
#include <utility>

#include "serve/chat_json.h"
#include "serve/chat_request.h"
#include "serve/endpoints.h"
#include "serve/json_fields.h"
#include "serve/structured_output.h"
#include "serve/tool_fields.h"

namespace godwit::serve {
namespace {

Json logprobs_or_null(const ChatAnswer& answer, const std::vector<LogprobEntry>& entries) {
  if (!answer.has_logprobs()) return nullptr;
  return chat_logprobs_json(entries, answer.model().need_tokenizer());
}

Response whole(ChatAnswer& answer, const ChatRequest& chat, const AnswerHead& head, const Request& request) {
  std::vector<ChatMessage> messages(static_cast<std::size_t>(chat.turn.choices));
  while (auto delta = answer.next(request.check_alive)) {
    ChatMessage& message = messages.at(static_cast<std::size_t>(delta->choice));
    message.add(std::move(*delta));
  }
  Json choices = Json::array();
  for (std::size_t i = 0; i < messages.size(); ++i)
    choices.push_back(chat_choice_json(static_cast<int>(i), messages[i],
                                       logprobs_or_null(answer, messages[i].logprobs), chat.shape));
  Json json = answer_json(head, "chat.completion", std::move(choices));
  if (chat.shape.returns_token_ids) json["prompt_token_ids"] = answer.prompt();
  add_extras(json, answer);
  return Response::json(json);
}

// Writes the chunks of one streamed answer.
class ChunkWriter {
 public:
  ChunkWriter(EventSink& sink, const AnswerHead& head, const ChatAnswer& answer, const ChatRequest& chat)
      : sink_(sink), head_(head), answer_(answer), chat_(chat) {}

  void write(const ChatDelta& delta) {
    if (delta.is_first) send(delta.choice, {{"role", "assistant"}, {"content", ""}});
    std::vector<Json> deltas = chat_deltas_json(delta.pieces, chat_.shape);
    // The first one with content carries what belongs to the step; entries may complete and ids come without
    // text.
    const auto has_content = [](const Json& json) { return json.contains("content"); };
    auto carrier = std::ranges::find_if(deltas, has_content);
    const bool has_ids = chat_.shape.returns_token_ids && !delta.ids.empty();
    if (carrier == deltas.end() && (has_ids || !delta.logprobs.empty()))
      carrier = deltas.insert(deltas.end(), Json{{"content", ""}});
    for (auto json = deltas.begin(); json != deltas.end(); ++json) {
      const bool carries = json == carrier;
      send(delta.choice, std::move(*json),
           carries ? logprobs_or_null(answer_, delta.logprobs) : Json(nullptr), nullptr,
           carries && has_ids ? delta.ids : std::vector<int>());
    }
    if (delta.finish)
      send(delta.choice, Json::object(), nullptr, chat_finish_json(delta.finish, chat_.shape));
  }

  void finish() {
    if (chat_.include_usage) {
      Json chunk = answer_json(head_, "chat.completion.chunk", Json::array());
      add_extras(chunk, answer_);
      sink_.send(dump_json(chunk));
    }
    sink_.send("[DONE]");
  }

 private:
  void send(int choice, Json delta, Json logprobs = nullptr, const Json& finish = nullptr,
            const std::vector<int>& ids = {}) {
    Json json = chat_chunk_choice_json(choice, std::move(delta), std::move(logprobs), finish);
    if (!ids.empty()) json["token_ids"] = ids;
    Json chunk = answer_json(head_, "chat.completion.chunk", Json::array({std::move(json)}));
    if (chat_.shape.returns_token_ids && !std::exchange(has_begun_, true))
      chunk["prompt_token_ids"] = answer_.prompt();
    if (chat_.include_usage) chunk["usage"] = nullptr;
    sink_.send(dump_json(chunk));
  }

  EventSink& sink_;
  const AnswerHead& head_;
  const ChatAnswer& answer_;
  const ChatRequest& chat_;
  bool has_begun_ = false;
};

void stream(ChatAnswer& answer, const ChatRequest& chat, const AnswerHead& head, const Request& request,
            EventSink& sink) {
  ChunkWriter writer(sink, head, answer, chat);
  const auto waiting = [&] {
    request.check_alive();
    sink.idle();
  };
  while (const auto delta = answer.next(waiting)) writer.write(*delta);
  writer.finish();
}

}  // namespace

Response chat_completions(const Request& request, Context& context) {
  const Json body = parse_body(request.body);
  auto loaded = context.models.open(model_name(body), request.check_alive);
  ChatRequest chat = parse_chat_request(body, loaded->model);
  note_left_out(chat.left_out, request, context);
  const AnswerHead head{random_id("chatcmpl-"), context.server.now_unix(), loaded->model.id,
                        loaded->model.fingerprint};
  auto answer = std::make_shared<ChatAnswer>(std::move(loaded), chat.turn);
  Response response;
  if (chat.stream)
    response = Response::event_stream([answer, head, chat = std::move(chat), &request](EventSink& sink) {
      stream(*answer, chat, head, request, sink);
    });
  else
    response = whole(*answer, chat, head, request);
  if (answer->grammar()) add_notes(*answer->grammar(), response.headers);
  return response;
}

}  // namespace godwit::serve
