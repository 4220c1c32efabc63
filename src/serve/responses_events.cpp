#include "serve/responses_events.h"

#include <utility>

#include "serve/openai_json.h"

namespace godwit::serve {
namespace {

using Kind = text::TurnPiece::Kind;

Json usage_json_of(const Usage& usage) {
  return {{"input_tokens", usage.prompt_tokens},
          {"input_tokens_details", {{"cached_tokens", usage.cached_tokens}}},
          {"output_tokens", usage.completion_tokens},
          {"output_tokens_details", {{"reasoning_tokens", usage.reasoning_tokens}}},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens}};
}

Json new_reasoning() {
  return {{"type", "reasoning"},      {"id", random_id("rs_")},       {"summary", Json::array()},
          {"content", Json::array()}, {"encrypted_content", nullptr}, {"status", "in_progress"}};
}

Json new_message() {
  return {{"type", "message"},
          {"id", random_id("msg_")},
          {"role", "assistant"},
          {"status", "in_progress"},
          {"content", Json::array()}};
}

Json new_call(const text::TurnPiece& piece) {
  return {{"type", "function_call"}, {"id", random_id("fc_")}, {"call_id", piece.id},
          {"name", piece.name},      {"arguments", ""},        {"status", "in_progress"}};
}

Json text_part() {
  return {{"type", "output_text"}, {"text", ""}, {"annotations", Json::array()}, {"logprobs", Json::array()}};
}

}  // namespace

ResponseWriter::ResponseWriter(Json frame, const ChatAnswer& answer, Send send)
    : frame_(std::move(frame)), answer_(answer), send_(std::move(send)) {}

void ResponseWriter::send(std::string_view type, Json event) {
  if (!send_) return;
  Json whole{{"type", type}, {"sequence_number", sequence_++}};
  whole.update(event);
  send_(type, whole);
}

void ResponseWriter::send_of_item(std::string_view type, Json event) {
  Json whole{{"item_id", item()["id"]}, {"output_index", output_.size() - 1}};
  whole.update(event);
  send(type, std::move(whole));
}

Json ResponseWriter::response(std::string_view status) const {
  Json json = frame_;
  json["status"] = status;
  json["output"] = output_;
  return json;
}

void ResponseWriter::begin() {
  send("response.created", {{"response", response("in_progress")}});
  send("response.in_progress", {{"response", response("in_progress")}});
}

void ResponseWriter::open(Open what, Json item) {
  if (open_ != Open::none) close("completed");
  open_ = what;
  output_.push_back(std::move(item));
  send("response.output_item.added", {{"output_index", output_.size() - 1}, {"item", output_.back()}});
}

void ResponseWriter::open_part(Json part) {
  item()["content"].push_back(part);
  send_of_item("response.content_part.added", {{"content_index", 0}, {"part", std::move(part)}});
}

void ResponseWriter::close_text() {
  const Json& part = item()["content"][0];
  if (open_ == Open::reasoning) {
    send_of_item("response.reasoning_text.done", {{"content_index", 0}, {"text", part["text"]}});
  } else {
    send_of_item("response.output_text.done",
                 {{"content_index", 0}, {"text", part["text"]}, {"logprobs", part["logprobs"]}});
  }
  send_of_item("response.content_part.done", {{"content_index", 0}, {"part", part}});
}

void ResponseWriter::close(std::string_view status) {
  if (open_ == Open::call)
    send_of_item("response.function_call_arguments.done",
                 {{"name", item()["name"]}, {"arguments", item()["arguments"]}});
  else
    close_text();
  item()["status"] = status;
  send("response.output_item.done", {{"output_index", output_.size() - 1}, {"item", item()}});
  open_ = Open::none;
}

void ResponseWriter::add_text(const std::string& more, Json logprobs) {
  Json& part = item()["content"][0];
  part["text"].get_ref<std::string&>() += more;
  if (open_ == Open::reasoning)
    return send_of_item("response.reasoning_text.delta", {{"content_index", 0}, {"delta", more}});
  for (const Json& entry : logprobs) part["logprobs"].push_back(entry);
  send_of_item("response.output_text.delta",
               {{"content_index", 0}, {"delta", more}, {"logprobs", std::move(logprobs)}});
}

void ResponseWriter::read(const text::TurnPiece& piece, Json& logprobs) {
  if (piece.kind == Kind::call) return open(Open::call, new_call(piece));
  if (piece.text.empty()) return;
  if (piece.kind == Kind::arguments) {
    item()["arguments"].get_ref<std::string&>() += piece.text;
    return send_of_item("response.function_call_arguments.delta", {{"delta", piece.text}});
  }
  const bool is_reasoning = piece.kind == Kind::reasoning;
  const Open wanted = is_reasoning ? Open::reasoning : Open::message;
  if (open_ != wanted) {
    open(wanted, is_reasoning ? new_reasoning() : new_message());
    open_part(is_reasoning ? Json{{"type", "reasoning_text"}, {"text", ""}} : text_part());
  }
  add_text(piece.text, is_reasoning ? Json::array() : std::exchange(logprobs, Json::array()));
}

Json ResponseWriter::logprobs_json(const std::vector<LogprobEntry>& entries) const {
  Json list = Json::array();
  for (const LogprobEntry& entry : entries)
    list.push_back(chat_logprob_json(entry, answer_.model().need_tokenizer()));
  return list;
}

void ResponseWriter::add(const ChatDelta& delta) {
  Json logprobs = logprobs_json(delta.logprobs);
  for (const text::TurnPiece& piece : delta.pieces) read(piece, logprobs);
  if (!logprobs.empty() && open_ == Open::message) add_text("", std::move(logprobs));
  if (delta.finish) finish_ = delta.finish;
}

Json ResponseWriter::finish(std::int64_t now) {
  const bool is_cut = finish_ == ChatFinish::length;
  if (output_.empty()) {  // an answer without a word is a message all the same
    open(Open::message, new_message());
    open_part(text_part());
  }
  if (open_ != Open::none) close(is_cut ? "incomplete" : "completed");
  frame_["usage"] = usage_json_of(answer_.usage());
  if (is_cut)
    frame_["incomplete_details"] = {{"reason", "max_output_tokens"}};
  else
    frame_["completed_at"] = now;
  Json made = response(is_cut ? "incomplete" : "completed");
  send(is_cut ? "response.incomplete" : "response.completed", {{"response", made}});
  return made;
}

Json ResponseWriter::fail(const Failure& failure) {
  const std::string code = failure.fields.code.empty() ? "server_error" : failure.fields.code;
  send("error", {{"code", code}, {"message", failure.message}, {"param", nullptr}});
  frame_["error"] = {{"code", code}, {"message", failure.message}};
  Json made = response("failed");
  send("response.failed", {{"response", made}});
  return made;
}

}  // namespace godwit::serve
