#include "serve/ollama_json.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace godwit::serve {
namespace {

std::int64_t nanoseconds(double seconds) { return std::llround(seconds * 1e9); }

Json logprobs_json(const std::vector<LogprobEntry>& entries, const text::Tokenizer& tokenizer) {
  Json list = Json::array();
  for (const LogprobEntry& entry : entries) list.push_back(chat_logprob_json(entry, tokenizer));
  return list;
}

}  // namespace

std::string rfc3339(std::int64_t unix_seconds) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(unix_seconds)));
}

void OllamaPart::append(OllamaPart more) {
  content += more.content;
  thinking += more.thinking;
  for (Json& call : more.calls) calls.push_back(std::move(call));
  std::ranges::move(more.logprobs, std::back_inserter(logprobs));
}

OllamaPart OllamaParts::add(ChatDelta delta) {
  OllamaPart part{.logprobs = std::move(delta.logprobs)};
  for (text::TurnPiece& piece : delta.pieces) {
    using Kind = text::TurnPiece::Kind;
    if (piece.kind == Kind::arguments) {
      if (open_) open_->text += piece.text;
      continue;
    }
    close_call(part);
    if (piece.kind == Kind::call)
      open_ = std::move(piece);
    else
      (piece.kind == Kind::reasoning ? part.thinking : part.content) += piece.text;
  }
  if (delta.finish) close_call(part);
  return part;
}

void OllamaParts::close_call(OllamaPart& into) {
  if (!open_) return;
  // An answer that its limit cut inside a call has the call without its arguments.
  Json arguments = Json::parse(open_->text, nullptr, /*allow_exceptions=*/false);
  if (!arguments.is_object()) arguments = Json::object();
  into.calls.push_back(
      {{"id", open_->id},
       {"function", {{"index", open_->call}, {"name", open_->name}, {"arguments", std::move(arguments)}}}});
  open_.reset();
}

Json ollama_line(const OllamaHead& head, const OllamaPart& part, const text::Tokenizer* tokenizer) {
  Json line{{"model", head.model}, {"created_at", head.created_at}};
  if (head.shape == OllamaShape::chat) {
    Json& message = line["message"];
    message = {{"role", "assistant"}, {"content", part.content}};
    if (!part.thinking.empty()) message["thinking"] = part.thinking;
    if (!part.calls.empty()) message["tool_calls"] = part.calls;
  } else {
    line["response"] = part.content;
    if (!part.thinking.empty()) line["thinking"] = part.thinking;
  }
  if (!part.logprobs.empty() && tokenizer) line["logprobs"] = logprobs_json(part.logprobs, *tokenizer);
  line["done"] = false;
  return line;
}

void finish_ollama_line(Json& line, const OllamaEnd& end) {
  line["done"] = true;
  line["done_reason"] = end.reason;
  line["total_duration"] = nanoseconds(end.total_seconds);
  line["load_duration"] = nanoseconds(end.load_seconds);
  if (end.reason == "load" || end.reason == "unload") return;
  line["prompt_eval_count"] = end.usage.prompt_tokens;
  line["prompt_eval_duration"] = nanoseconds(end.timings.prompt_seconds);
  line["eval_count"] = end.usage.completion_tokens;
  line["eval_duration"] = nanoseconds(end.timings.completion_seconds);
}

}  // namespace godwit::serve
