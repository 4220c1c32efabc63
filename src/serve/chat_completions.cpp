// POST /v1/chat/completions. Parse -> submit -> answer, on a connection thread.
#include <algorithm>
#include <iterator>
#include <memory>

#include "serve/chat_request.h"
#include "serve/choice_stream.h"
#include "serve/endpoints.h"
#include "serve/openai_json.h"

namespace godwit::serve {
namespace {

Json logprobs_json(const std::vector<LogprobEntry>& entries, const text::Tokenizer& tokenizer) {
  Json content = Json::array();
  for (const auto& entry : entries) content.push_back(chat_logprob_json(entry, tokenizer));
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

Response whole(ChoiceStream& answer, const AnswerHead& head, const Request& request, const Context& context) {
  const bool has_logprobs = answer.plan().common.logprobs;
  Json choices = Json::array();
  std::string content;
  std::vector<LogprobEntry> entries;
  while (auto delta = answer.next(request.check_alive)) {
    content += delta->text;
    std::ranges::move(delta->logprobs, std::back_inserter(entries));
    if (delta->finish == decode::FinishReason::none) continue;
    Json logprobs = has_logprobs ? logprobs_json(entries, context.model.need_tokenizer()) : Json(nullptr);
    choices.push_back(chat_choice_json(delta->index, content, std::move(logprobs), delta->finish));
    content.clear();
    entries.clear();
  }
  Json json = answer_json(head, "chat.completion", std::move(choices));
  add_extras(json, answer);
  return Response::json(json);
}

// Writes the chunks of one streamed answer.
class ChunkWriter {
 public:
  ChunkWriter(EventSink& sink, const AnswerHead& head, const Context& context, bool include_usage,
              bool has_logprobs)
      : sink_(sink),
        head_(head),
        context_(context),
        include_usage_(include_usage),
        has_logprobs_(has_logprobs) {}

  void write(const Delta& delta) {
    constexpr auto kGoesOn = decode::FinishReason::none;
    if (delta.is_first)
      send(chat_chunk_choice_json(delta.index, {{"role", "assistant"}, {"content", ""}}, nullptr, kGoesOn));
    if (!delta.text.empty() || !delta.logprobs.empty()) {
      Json logprobs =
          has_logprobs_ ? logprobs_json(delta.logprobs, context_.model.need_tokenizer()) : Json(nullptr);
      send(chat_chunk_choice_json(delta.index, {{"content", delta.text}}, std::move(logprobs), kGoesOn));
    }
    if (delta.finish != kGoesOn)
      send(chat_chunk_choice_json(delta.index, Json::object(), nullptr, delta.finish));
  }

  void finish(const ChoiceStream& answer) {
    if (include_usage_) {
      Json chunk = answer_json(head_, "chat.completion.chunk", Json::array());
      add_extras(chunk, answer);
      sink_.send(dump_json(chunk));
    }
    sink_.send("[DONE]");
  }

 private:
  void send(Json choice) {
    Json chunk = answer_json(head_, "chat.completion.chunk", Json::array({std::move(choice)}));
    if (include_usage_) chunk["usage"] = nullptr;
    sink_.send(dump_json(chunk));
  }

  EventSink& sink_;
  const AnswerHead& head_;
  const Context& context_;
  bool include_usage_;
  bool has_logprobs_;
};

}  // namespace

Response chat_completions(const Request& request, Context& context) {
  ChatRequest chat = parse_chat_request(request.body, context.model);
  const AnswerHead head{random_id("chatcmpl-"), context.now_unix(), context.model.id,
                        context.model.fingerprint};
  auto answer = std::make_shared<ChoiceStream>(context.generator, context.model, std::move(chat.plan));
  if (!chat.stream) return whole(*answer, head, request, context);
  return Response::event_stream(
      [answer, head, &request, &context, usage = chat.include_usage](EventSink& sink) {
        ChunkWriter writer(sink, head, context, usage, answer->plan().common.logprobs);
        const auto waiting = [&] {
          request.check_alive();
          sink.idle();
        };
        while (const auto delta = answer->next(waiting)) writer.write(*delta);
        writer.finish(*answer);
      });
}

}  // namespace godwit::serve
