// From a chat to token ids. Control tokens arise only where the template wrote them: text of a message that
// spells one (a user's, a tool's) is encoded as the plain characters it is, so nobody can forge a turn. The
// assistant's own messages are taken as they are: they hold what the model itself wrote, and templates look
// for control tokens in them (to cut reasoning out, say).
#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace godwit::text {

class ChatEncoder {
 public:
  // `tokenizer` must outlive the encoder. Collects its special tokens.
  explicit ChatEncoder(const Tokenizer& tokenizer);

  // Renders and tokenizes; the template writes BOS itself where the model wants one. Throws what both throw.
  // `continuation`, given the rendered prompt, returns the beginning of the answer, which is tokenized together with it.
  using Continuation = std::function<std::string(std::string_view prompt)>;
  std::vector<int> encode(const ChatTemplate& chat_template, ChatInput input, const Continuation& continuation = {}) const;

 private:
  std::size_t special_at(std::string_view text, std::size_t at) const;
  bool may_begin_special(std::string_view tail) const;
  void mark(Json& value, std::string_view marker, bool& found) const;
  std::vector<int> encode_marked(std::string_view rendered, std::string_view marker) const;

  const Tokenizer& tokenizer_;
  std::array<std::vector<std::string>, 256> specials_;  // by first byte, the longest first
};

}  // namespace godwit::text
