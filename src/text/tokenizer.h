// Text <-> token ids, over the Rust crate `tokenizers`. Immutable after construction; const methods are
// thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/gguf_vocabulary.h"

namespace godwit::text {

struct EncodeOptions {
  bool add_special_tokens = true;    // run the post-processor (BOS, ...); false for rendered chat templates
  bool parse_special_tokens = true;  // control tokens spelled in the text become their ids
};

class Tokenizer {
 public:
  // From a tokenizer.json. Throws Error{not_found, corrupt_file} naming the file.
  static Tokenizer from_file(const std::filesystem::path& tokenizer_json);
  // `general` is for tests: the crate's own model, where `direct` would make ours, which gives the same ids.
  enum class Construction { direct, general };
  static Tokenizer from_json(std::string_view json, std::string_view origin,
                             Construction construction = Construction::direct);
  // Rebuilt from GGUF metadata. An unknown model or pre-tokenizer is Error{unsupported}
  // naming it.
  static Tokenizer from_gguf(const GgufVocabulary& vocabulary, std::string_view origin);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // Invalid UTF-8 is Error{invalid_argument} naming the byte offset.
  std::vector<int> encode(std::string_view text, const EncodeOptions& options = {}) const;
  // Whole text; bytes that form no character become U+FFFD. Ids outside the vocabulary are
  // Error{invalid_argument}.
  std::string decode(std::span<const int> ids, bool skip_special_tokens = true) const;

  int vocabulary_size() const;  // largest id + 1
  std::optional<int> id_of(std::string_view token) const;
  // The token as stored in the vocabulary ("Ġhello", "▁hi", "<0x0A>"); nullopt for holes and ids out of
  // range.
  std::optional<std::string> token_of(int id) const;
  // The raw bytes that the token adds to a text (byte-level and byte-fallback tokens resolved); empty for
  // special tokens.
  std::string bytes_of(int id) const;
  bool is_special(int id) const;

  struct Impl;
  const Impl& impl() const { return *impl_; }

 private:
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace godwit::text
