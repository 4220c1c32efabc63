#include "text/turn/turn_format.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "text/turn/tool_formats.h"

namespace godwit::text {
namespace {

struct Reasoning {
  std::string_view open, close;
};

// Special forms first: templates of any family may speak of <think> as well.
constexpr std::array<Reasoning, 5> kReasonings = {{{"<|channel>thought", "<channel|>"},
                                                   {"[THINK]", "[/THINK]"},
                                                   {"<seed:think>", "</seed:think>"},
                                                   {"<longcat_think>", "</longcat_think>"},
                                                   {"<think>", "</think>"}}};

// Variables by which templates switch reasoning, the usual one first.
constexpr std::array<std::string_view, 2> kSwitches = {"enable_thinking", "thinking"};

bool has_word(std::string_view text, std::string_view word) {
  const auto is_part = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '\'' || c == '"';
  };
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_part(text[at - 1])) && (end == text.size() || !is_part(text[end]))) return true;
  }
  return false;
}

const Reasoning* reasoning_of(std::string_view source, const Tokenizer& tokenizer) {
  for (const Reasoning& reasoning : kReasonings)
    if (source.find(reasoning.open) != std::string_view::npos || source.find(reasoning.close) != std::string_view::npos)
      return &reasoning;
  for (const Reasoning& reasoning : kReasonings)
    if (tokenizer.id_of(reasoning.open) && tokenizer.id_of(reasoning.close)) return &reasoning;
  return nullptr;
}

// The longest token that the marker begins with and that could not be anything else.
void note_token(TurnFormat& format, const Tokenizer& tokenizer, std::string_view text) {
  for (std::size_t size = text.size(); size > 2; --size) {
    const auto id = tokenizer.id_of(text.substr(0, size));
    if (!id) continue;
    if (!tokenizer.is_special(*id) && size < text.size()) continue;
    if (!format.token_texts.emplace(*id, text.substr(0, size)).second) return;
    if (tokenizer.is_special(*id)) format.hidden_tokens.push_back(*id);
    return;
  }
}

TurnFormat format_with(ToolFormat tools, std::string_view source, const Tokenizer& tokenizer) {
  TurnFormat format{.tools = tools};
  if (const Reasoning* reasoning = reasoning_of(source, tokenizer); reasoning && tools != ToolFormat::harmony) {
    format.reasoning_open = reasoning->open;
    format.reasoning_close = reasoning->close;
  }
  const auto writes = [source](std::string_view text) { return source.find(text) != std::string_view::npos; };
  format.has_older_calls = (tools == ToolFormat::mistral && !writes("[ARGS]")) ||
                           (tools == ToolFormat::deepseek && writes("```json"));
  for (const std::string_view name : kSwitches)
    if (format.thinking_variable.empty() && has_word(source, name)) format.thinking_variable = name;
  for (const std::string_view text : marker_texts(tools)) note_token(format, tokenizer, text);
  for (const std::string* text : {&format.reasoning_open, &format.reasoning_close})
    note_token(format, tokenizer, *text);
  return format;
}

}  // namespace

TurnFormat turn_format_of(std::string_view source, const Tokenizer& tokenizer) {
  const ToolFormat tools = tool_format_of(source);
  return format_with(tools == ToolFormat::none ? ToolFormat::generic : tools, source, tokenizer);
}

TurnFormat turn_format_of(std::string_view source, const Tokenizer& tokenizer, std::string_view tools) {
  if (const auto format = tool_format_named(tools)) return format_with(*format, source, tokenizer);
  fail(ErrorCode::invalid_argument, "tools", "{}: no such tool format; there are {}", tools,
       fmt::join(tool_format_names(), ", "));
}

// The prompt's end decides: a span that the template opened and closed is behind us.
bool opens_reasoning(const TurnFormat& format, std::string_view prompt) {
  if (format.tools == ToolFormat::harmony) return prompt.ends_with("<|channel|>analysis<|message|>");
  if (format.reasoning_open.empty()) return false;
  const std::size_t end = prompt.find_last_not_of(" \n\r\t") + 1;
  return prompt.substr(0, end).ends_with(format.reasoning_open);
}

}  // namespace godwit::text
