#include "text/detokenizer.h"

#include "text/tokenizer_impl.h"
#include "text/utf8.h"

namespace godwit::text {

struct Detokenizer::Impl {
  const Tokenizer::Impl& tokenizer;
  bool show_special_tokens;
  Utf8Stream stream;
  int spaces_to_strip;  // left to take off the start of the text

  // Takes the artefact of SentencePiece off the start: at most so many spaces, and only before anything else.
  void strip_start(std::string& text) {
    while (spaces_to_strip > 0 && !text.empty()) {
      if (text.front() != ' ') {
        spaces_to_strip = 0;
        return;
      }
      text.erase(0, 1);
      --spaces_to_strip;
    }
  }
};

Detokenizer::Detokenizer(const Tokenizer& tokenizer, bool show_special_tokens) {
  const DecodingRules& rules = tokenizer.impl().rules;
  const auto replacement = rules.byte_fallback ? Replacement::every_byte : Replacement::maximal_subpart;
  const int strip = rules.word_pieces ? 1 : rules.strip_leading_spaces;
  impl_ = std::make_unique<Impl>(Impl{tokenizer.impl(), show_special_tokens, Utf8Stream(replacement), strip});
}

Detokenizer::~Detokenizer() = default;
Detokenizer::Detokenizer(Detokenizer&&) noexcept = default;

std::string Detokenizer::add(int id) { return add(id, impl_->show_special_tokens); }
std::string Detokenizer::add_shown(int id) { return add(id, true); }

std::string Detokenizer::add(int id, bool is_shown) {
  const Tokenizer::Impl& tokenizer = impl_->tokenizer;
  const bool is_special = tokenizer.need(id) == TokenKind::special;
  std::string text;
  if (!is_special) text = impl_->stream.add(tokenizer.rules.bytes_of(tokenizer.texts[id]));
  if (is_special && is_shown) text = impl_->stream.finish() + std::string(tokenizer.texts[id]);
  impl_->strip_start(text);
  return text;
}

std::string Detokenizer::finish() {
  std::string text = impl_->stream.finish();
  impl_->strip_start(text);
  return text;
}

}  // namespace godwit::text
