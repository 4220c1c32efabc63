#include "text/chat_encoder.h"

#include <algorithm>

#include "base/error.h"

namespace godwit::text {
namespace {

constexpr char32_t kFirstPrivate = 0xE000, kLastPrivate = 0xF8FF;

std::string utf8_of(char32_t code) {
  return {static_cast<char>(0xE0 | (code >> 12)), static_cast<char>(0x80 | ((code >> 6) & 0x3F)),
          static_cast<char>(0x80 | (code & 0x3F))};
}

// A character of the private use area that neither the chat nor the template holds.
std::string unused_character(const ChatInput& input, const std::string& template_source) {
  const std::string texts = dump_json(input.messages) + dump_json(input.tools) + dump_json(input.documents) +
                            dump_json(input.extra) + template_source;
  for (char32_t code = kFirstPrivate; code <= kLastPrivate; ++code) {
    std::string character = utf8_of(code);
    if (texts.find(character) == std::string::npos) return character;
  }
  fail(ErrorCode::invalid_argument, "chat", "the messages use every character of the private use area");
}

std::string without(std::string_view text, std::string_view marker) {
  std::string out;
  for (std::size_t at = 0;;) {
    const std::size_t next = text.find(marker, at);
    out += text.substr(at, next - at);
    if (next == std::string_view::npos) return out;
    at = next + marker.size();
  }
}

void append(std::vector<int>& ids, const std::vector<int>& more) {
  ids.insert(ids.end(), more.begin(), more.end());
}

}  // namespace

ChatEncoder::ChatEncoder(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {
  for (int id = 0; id < tokenizer.vocabulary_size(); ++id) {
    const auto token = tokenizer.token_of(id);
    if (!token || token->empty() || !tokenizer.is_special(id)) continue;
    specials_[static_cast<unsigned char>(token->front())].push_back(*token);
  }
  for (auto& list : specials_)
    std::ranges::sort(list, [](const auto& a, const auto& b) { return a.size() > b.size(); });
}

// The length of the longest special token spelled at `at`; 0: none.
std::size_t ChatEncoder::special_at(std::string_view text, std::size_t at) const {
  for (const auto& token : specials_[static_cast<unsigned char>(text[at])])
    if (text.substr(at).starts_with(token)) return token.size();
  return 0;
}

// The end of one text part may be the beginning of a special token that the next part completes.
bool ChatEncoder::may_begin_special(std::string_view tail) const {
  const auto& tokens = specials_[static_cast<unsigned char>(tail.front())];
  return std::ranges::any_of(tokens, [tail](const std::string& token) { return token.starts_with(tail); });
}

// Puts the marker in front of every special token that a string in `value` spells or may begin.
void ChatEncoder::mark(Json& value, std::string_view marker, bool& found) const {
  if (value.is_structured()) {
    for (auto& item : value) mark(item, marker, found);
    return;
  }
  if (!value.is_string()) return;
  const auto& text = value.get_ref<const std::string&>();
  std::string out;
  std::size_t copied = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (special_at(text, at) == 0 && !may_begin_special(std::string_view(text).substr(at))) continue;
    out.append(text, copied, at - copied).append(marker);
    copied = at;
    found = true;
  }
  if (copied > 0 || !out.empty()) value = out.append(text, copied);
}

// The rendered text falls into stretches between the template's own control tokens. Those with a marker are
// encoded without parsing control tokens; the others together with their control tokens, as if nothing had
// happened.
std::vector<int> ChatEncoder::encode_marked(std::string_view rendered, std::string_view marker) const {
  std::vector<int> ids;
  std::size_t pending = 0, stretch = 0;  // starts of what is not encoded yet, and of the current stretch
  const auto end_stretch = [&](std::size_t end) {
    const std::string_view text = rendered.substr(stretch, end - stretch);
    if (text.find(marker) == std::string_view::npos) return;
    append(ids,
           tokenizer_.encode(rendered.substr(pending, stretch - pending), {.add_special_tokens = false}));
    append(ids, tokenizer_.encode(without(text, marker),
                                  {.add_special_tokens = false, .parse_special_tokens = false}));
    pending = end;
  };
  for (std::size_t at = 0; at < rendered.size();) {
    const bool is_marked = rendered.substr(0, at).ends_with(marker);
    const std::size_t length = is_marked ? 0 : special_at(rendered, at);
    if (length == 0) {
      ++at;
      continue;
    }
    end_stretch(at);
    at += length;
    stretch = at;
  }
  end_stretch(rendered.size());
  append(ids, tokenizer_.encode(rendered.substr(pending), {.add_special_tokens = false}));
  return ids;
}

std::vector<int> ChatEncoder::encode(const ChatTemplate& chat_template, ChatInput input,
                                     const Continuation& continuation) const {
  const std::string marker = unused_character(input, chat_template.source());
  bool found = false;
  for (Json& message : input.messages)
    if (!message.is_object() || message.value("role", Json()) != "assistant") mark(message, marker, found);
  for (Json* part : {&input.tools, &input.documents, &input.extra}) mark(*part, marker, found);
  std::string rendered = chat_template.render(input);
  if (continuation) rendered += continuation(rendered);
  // The usual case: one call, and the tokenizer sees the text as every other implementation does.
  if (!found) return tokenizer_.encode(rendered, {.add_special_tokens = false});
  return encode_marked(rendered, marker);
}

}  // namespace godwit::text
