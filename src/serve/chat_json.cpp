#include "serve/chat_json.h"

namespace godwit::serve {
namespace {

using Kind = text::TurnPiece::Kind;

Json function_json(const ChatCall& call) { return {{"name", call.name}, {"arguments", call.arguments}}; }

void add_calls(Json& message, const std::vector<ChatCall>& calls, const ChatShape& shape) {
  if (calls.empty()) return;
  if (shape.is_legacy) {
    message["function_call"] = function_json(calls[0]);
    return;
  }
  for (const ChatCall& call : calls)
    message["tool_calls"].push_back(
        {{"id", call.id}, {"type", "function"}, {"function", function_json(call)}});
}

void add_reasoning(Json& message, const std::string& text) {
  message["reasoning_content"] = text;
  message["reasoning"] = text;
}

Json call_json(const text::TurnPiece& piece, const ChatShape& shape) {
  Json function{{"name", piece.name}, {"arguments", ""}};
  if (shape.is_legacy) return {{"function_call", std::move(function)}};
  Json call{{"index", piece.call}, {"id", piece.id}, {"type", "function"}, {"function", std::move(function)}};
  return {{"tool_calls", Json::array({std::move(call)})}};
}

Json arguments_json(const text::TurnPiece& piece, const ChatShape& shape) {
  Json function{{"arguments", piece.text}};
  if (shape.is_legacy) return {{"function_call", std::move(function)}};
  return {{"tool_calls", Json::array({{{"index", piece.call}, {"function", std::move(function)}}})}};
}

Json delta_json(const text::TurnPiece& piece, const ChatShape& shape) {
  Json delta = Json::object();
  if (piece.kind == Kind::content) return {{"content", piece.text}};
  if (piece.kind == Kind::call) return call_json(piece, shape);
  if (piece.kind == Kind::arguments) return arguments_json(piece, shape);
  add_reasoning(delta, piece.text);
  return delta;
}

bool is_seen(const text::TurnPiece& piece, const ChatShape& shape) {
  if (piece.kind == Kind::reasoning) return shape.shows_reasoning && !piece.text.empty();
  return piece.kind == Kind::call || !piece.text.empty();
}

}  // namespace

Json chat_finish_json(std::optional<ChatFinish> finish, const ChatShape& shape) {
  if (!finish) return nullptr;
  if (*finish == ChatFinish::tool_calls) return shape.is_legacy ? "function_call" : "tool_calls";
  return *finish == ChatFinish::length ? "length" : "stop";
}

Json chat_choice_json(int index, const ChatMessage& message, Json logprobs, const ChatShape& shape) {
  const bool is_null = message.content.empty() && !message.calls.empty();
  Json out{{"role", "assistant"},
           {"content", is_null ? Json(nullptr) : Json(message.content)},
           {"refusal", nullptr},
           {"annotations", Json::array()}};
  if (shape.shows_reasoning && !message.reasoning.empty()) add_reasoning(out, message.reasoning);
  add_calls(out, message.calls, shape);
  Json choice{{"index", index},
              {"message", std::move(out)},
              {"logprobs", std::move(logprobs)},
              {"finish_reason", chat_finish_json(message.finish, shape)}};
  if (shape.returns_token_ids) choice["token_ids"] = message.ids;
  return choice;
}

std::vector<Json> chat_deltas_json(const std::vector<text::TurnPiece>& pieces, const ChatShape& shape) {
  std::vector<text::TurnPiece> joined;
  for (const text::TurnPiece& piece : pieces) {
    if (!is_seen(piece, shape)) continue;
    const bool goes_on = !joined.empty() && piece.kind != Kind::call && joined.back().kind == piece.kind &&
                         joined.back().call == piece.call;
    if (goes_on)
      joined.back().text += piece.text;
    else
      joined.push_back(piece);
  }
  std::vector<Json> deltas;
  for (const text::TurnPiece& piece : joined) deltas.push_back(delta_json(piece, shape));
  return deltas;
}

Json chat_chunk_choice_json(int index, Json delta, Json logprobs, const Json& finish) {
  return {{"index", index},
          {"delta", std::move(delta)},
          {"logprobs", std::move(logprobs)},
          {"finish_reason", finish}};
}

Json chat_logprobs_json(const std::vector<LogprobEntry>& entries, const text::Tokenizer& tokenizer) {
  Json content = Json::array();
  for (const auto& entry : entries) content.push_back(chat_logprob_json(entry, tokenizer));
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

}  // namespace godwit::serve
