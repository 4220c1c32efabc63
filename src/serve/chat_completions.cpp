// POST /v1/chat/completions. Parse -> submit -> answer, on a connection thread.
#include <algorithm>
#include <iterator>
#include <memory>

#include "serve/chat_answer.h"
#include "serve/chat_request.h"
#include "serve/endpoints.h"
#include "serve/json_fields.h"
#include "serve/openai_json.h"

namespace godwit::serve {
namespace {

Json logprobs_json(const std::vector<LogprobEntry>& entries, const text::Tokenizer& tokenizer) {
  Json content = Json::array();
  for (const auto& entry : entries) content.push_back(chat_logprob_json(entry, tokenizer));
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

// What one choice of a whole answer has come to.
struct Message {
  std::string content;
  std::vector<LogprobEntry> logprobs;
  std::optional<ChatFinish> finish;
};

Response whole(ChatAnswer& answer, int count, const AnswerHead& head, const Request& request) {
  std::vector<Message> messages(static_cast<std::size_t>(count));
  while (auto delta = answer.next(request.check_alive)) {
    Message& message = messages.at(static_cast<std::size_t>(delta->choice));
    for (const text::TurnPiece& piece : delta->pieces) message.content += piece.text;
    std::ranges::move(delta->logprobs, std::back_inserter(message.logprobs));
    if (delta->finish) message.finish = delta->finish;
  }
  Json choices = Json::array();
  for (int i = 0; i < count; ++i) {
    Message& message = messages[static_cast<std::size_t>(i)];
    Json logprobs =
        answer.has_logprobs() ? logprobs_json(message.logprobs, answer.model().need_tokenizer()) : Json(nullptr);
    choices.push_back(chat_choice_json(i, message.content, std::move(logprobs), message.finish));
  }
  Json json = answer_json(head, "chat.completion", std::move(choices));
  add_extras(json, answer);
  return Response::json(json);
}

// Writes the chunks of one streamed answer.
class ChunkWriter {
 public:
  ChunkWriter(EventSink& sink, const AnswerHead& head, const ChatAnswer& answer, bool include_usage)
      : sink_(sink), head_(head), answer_(answer), include_usage_(include_usage) {}

  void write(const ChatDelta& delta) {
    if (delta.is_first) send(delta.choice, {{"role", "assistant"}, {"content", ""}}, nullptr);
    std::string content;
    for (const text::TurnPiece& piece : delta.pieces) content += piece.text;
    if (!content.empty() || !delta.logprobs.empty()) {
      Json logprobs =
          answer_.has_logprobs() ? logprobs_json(delta.logprobs, answer_.model().need_tokenizer()) : Json(nullptr);
      send(delta.choice, {{"content", content}}, std::move(logprobs));
    }
    if (delta.finish) send(delta.choice, Json::object(), nullptr, delta.finish);
  }

  void finish() {
    if (include_usage_) {
      Json chunk = answer_json(head_, "chat.completion.chunk", Json::array());
      add_extras(chunk, answer_);
      sink_.send(dump_json(chunk));
    }
    sink_.send("[DONE]");
  }

 private:
  void send(int choice, Json delta, Json logprobs, std::optional<ChatFinish> finish = {}) {
    Json choices = Json::array({chat_chunk_choice_json(choice, std::move(delta), std::move(logprobs), finish)});
    Json chunk = answer_json(head_, "chat.completion.chunk", std::move(choices));
    if (include_usage_) chunk["usage"] = nullptr;
    sink_.send(dump_json(chunk));
  }

  EventSink& sink_;
  const AnswerHead& head_;
  const ChatAnswer& answer_;
  bool include_usage_;
};

}  // namespace

Response chat_completions(const Request& request, Context& context) {
  const Json body = parse_body(request.body);
  const auto loaded = context.models.open(model_name(body), request.check_alive);
  const ChatRequest chat = parse_chat_request(body, loaded->model);
  const AnswerHead head{random_id("chatcmpl-"), context.now_unix(), loaded->model.id, loaded->model.fingerprint};
  auto answer = std::make_shared<ChatAnswer>(loaded, chat.turn);
  if (!chat.stream) return whole(*answer, chat.turn.choices, head, request);
  return Response::event_stream([answer, head, &request, include_usage = chat.include_usage](EventSink& sink) {
    ChunkWriter writer(sink, head, *answer, include_usage);
    const auto waiting = [&] {
      request.check_alive();
      sink.idle();
    };
    while (const auto delta = answer->next(waiting)) writer.write(*delta);
    writer.finish();
  });
}

}  // namespace godwit::serve
