#include "decode/chat_prompt.h"

#include <algorithm>
#include <bitset>
#include <optional>
#include <string>
#include <string_view>

namespace godwit::decode {
namespace {

// Cuts a spelled control token behind its first byte with a marker; the rendered text is then encoded piece
// by piece between the markers, and no piece holds the whole token. Texts without one are encoded in one
// piece.
class Cutter {
 public:
  Cutter(const text::Tokenizer& tokenizer, const text::ChatInput& input) : marker_(unused_marker(input)) {
    for (int id = 0; id < tokenizer.vocabulary_size(); ++id) {
      if (!tokenizer.is_special(id)) continue;
      const std::optional<std::string> text = tokenizer.token_of(id);
      if (!text || text->size() < 2) continue;
      controls_.push_back(*text);
      begins_control_.set(static_cast<unsigned char>(text->front()));
    }
  }

  // Every string below `value`, but not the words that templates compare.
  void cut_all(Json& value) const {
    if (value.is_string()) {
      value = cut(value.get_ref<const std::string&>());
    } else if (value.is_object()) {
      for (auto& [key, child] : value.items())
        if (key != "role" && key != "type") cut_all(child);
    } else if (value.is_array()) {
      for (Json& child : value) cut_all(child);
    }
  }

  std::vector<std::string> pieces(std::string_view rendered) const {
    std::vector<std::string> pieces;
    while (true) {
      const std::size_t at = rendered.find(marker_);
      pieces.emplace_back(rendered.substr(0, at));
      if (at == std::string_view::npos) return pieces;
      rendered.remove_prefix(at + marker_.size());
    }
  }

 private:
  // One of the 32 code points that Unicode keeps for a program's own use and that the input does not hold.
  static std::string unused_marker(const text::ChatInput& input) {
    const std::string all = dump_json(input.messages) + dump_json(input.tools);
    std::string marker = "\xEF\xB7\x90";  // U+FDD0
    while (all.find(marker) != std::string::npos && marker.back() != '\xAF') ++marker.back();
    return marker;
  }

  std::string cut(std::string_view text) const {
    std::string out;
    for (std::size_t at = 0; at < text.size(); ++at) {
      out += text[at];
      if (!begins_control_[static_cast<unsigned char>(text[at])]) continue;
      const std::string_view rest = text.substr(at);
      const auto is_here = [rest](const std::string& control) { return rest.starts_with(control); };
      // The tail may be the beginning of one that the next part of the message completes.
      const auto may_follow = [rest](const std::string& control) { return control.starts_with(rest); };
      if (std::ranges::any_of(controls_, is_here) || std::ranges::any_of(controls_, may_follow))
        out += marker_;
    }
    return out;
  }

  std::string marker_;
  std::vector<std::string> controls_;
  std::bitset<256> begins_control_;
};

}  // namespace

std::vector<int> encode_chat(const text::Tokenizer& tokenizer, const text::ChatTemplate& chat_template,
                             text::ChatInput input) {
  const Cutter cutter(tokenizer, input);
  for (Json& message : input.messages)
    if (!message.is_object() || message.value("role", "") != "assistant") cutter.cut_all(message);
  cutter.cut_all(input.tools);
  std::vector<int> tokens;
  for (const std::string& piece : cutter.pieces(chat_template.render(input))) {
    const std::vector<int> some = tokenizer.encode(piece, {.add_special_tokens = false});
    tokens.insert(tokens.end(), some.begin(), some.end());
  }
  return tokens;
}

}  // namespace godwit::decode
