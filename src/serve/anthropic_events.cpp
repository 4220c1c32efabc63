#include "serve/anthropic_events.h"

#include "base/sha256.h"

namespace godwit::serve {
namespace {

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\n") == std::string_view::npos; }

}  // namespace

Json anthropic_usage_json(const Usage& usage) {
  return {{"input_tokens", usage.prompt_tokens - usage.cached_tokens},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", usage.cached_tokens},
          {"output_tokens", usage.completion_tokens},
          {"output_tokens_details", {{"thinking_tokens", usage.reasoning_tokens}}}};
}

void AnthropicEvents::start(const std::string& id, const std::string& model, const Usage& usage) {
  emit_({{"type", "message_start"},
         {"message",
          {{"id", id},
           {"type", "message"},
           {"role", "assistant"},
           {"model", model},
           {"content", Json::array()},
           {"stop_reason", nullptr},
           {"stop_sequence", nullptr},
           {"usage", anthropic_usage_json(usage)}}}});
}

void AnthropicEvents::add(const text::TurnPiece& piece) {
  switch (piece.kind) {
    case text::TurnPiece::Kind::content:
      return add_text(piece.text);
    case text::TurnPiece::Kind::reasoning:
      if (open_ != Block::thinking) open(Block::thinking, {{"type", "thinking"}, {"thinking", ""}, {"signature", ""}});
      thought_ += piece.text;
      return fill({{"type", "thinking_delta"}, {"thinking", piece.text}});
    case text::TurnPiece::Kind::call:
      return open(Block::tool,
                  {{"type", "tool_use"}, {"id", piece.id}, {"name", piece.name}, {"input", Json::object()}});
    case text::TurnPiece::Kind::arguments:
      has_arguments_ |= !piece.text.empty();
      return fill({{"type", "input_json_delta"}, {"partial_json", piece.text}});
  }
}

void AnthropicEvents::add_text(const std::string& text) {
  if (open_ != Block::text) {
    blank_ += text;
    if (is_blank(blank_)) return;
    open(Block::text, {{"type", "text"}, {"text", ""}});
    return fill({{"type", "text_delta"}, {"text", std::exchange(blank_, "")}});
  }
  fill({{"type", "text_delta"}, {"text", text}});
}

void AnthropicEvents::open(Block kind, Json block) {
  close();
  open_ = kind;
  if (kind != Block::text) blank_.clear();
  emit_({{"type", "content_block_start"}, {"index", ++index_}, {"content_block", std::move(block)}});
}

void AnthropicEvents::fill(Json delta) {
  emit_({{"type", "content_block_delta"}, {"index", index_}, {"delta", std::move(delta)}});
}

void AnthropicEvents::close() {
  if (open_ == Block::none) return;
  // Clients send it back as it is, and want it not empty.
  if (open_ == Block::thinking) fill({{"type", "signature_delta"}, {"signature", sha256_of(thought_)}});
  if (open_ == Block::tool && !has_arguments_) fill({{"type", "input_json_delta"}, {"partial_json", "{}"}});
  emit_({{"type", "content_block_stop"}, {"index", index_}});
  open_ = Block::none;
  has_arguments_ = false;
  thought_.clear();
}

void AnthropicEvents::finish(const std::string& stop_reason, const std::optional<std::string>& stop_sequence,
                             const Usage& usage) {
  // An answer of white space alone is an answer.
  if (index_ < 0 && !blank_.empty()) {
    open(Block::text, {{"type", "text"}, {"text", ""}});
    fill({{"type", "text_delta"}, {"text", blank_}});
  }
  close();
  emit_({{"type", "message_delta"},
         {"delta",
          {{"stop_reason", stop_reason}, {"stop_sequence", stop_sequence ? Json(*stop_sequence) : Json(nullptr)}}},
         {"usage", anthropic_usage_json(usage)}});
  emit_({{"type", "message_stop"}});
}

void AnthropicMessage::add(const Json& event) {
  const std::string type = event["type"].get<std::string>();
  if (type == "message_start") {
    message_ = event["message"];
  } else if (type == "content_block_start") {
    message_["content"].push_back(event["content_block"]);
    arguments_.clear();
  } else if (type == "content_block_delta") {
    const Json& delta = event["delta"];
    if (delta["type"] == "input_json_delta") {
      arguments_ += delta["partial_json"].get_ref<const std::string&>();
      return;
    }
    Json& block = message_["content"].back();
    for (const auto* field : {"text", "thinking", "signature"})
      if (delta.contains(field)) block[field].get_ref<std::string&>() += delta[field].get_ref<const std::string&>();
  } else if (type == "content_block_stop") {
    Json& block = message_["content"].back();
    if (block["type"] != "tool_use") return;
    // An answer that its limit cut inside a call has the call without its arguments.
    Json input = Json::parse(arguments_, nullptr, /*allow_exceptions=*/false);
    if (input.is_object()) block["input"] = std::move(input);
  } else if (type == "message_delta") {
    message_.update(event["delta"]);
    message_["usage"] = event["usage"];
  }
}

}  // namespace godwit::serve
