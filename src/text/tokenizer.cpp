#include "text/tokenizer.h"

#include "base/error.h"
#include "base/file_map.h"
#include "base/json.h"
#include "text/detokenizer.h"
#include "text/gguf_tokenizer.h"
#include "text/rust_call.h"
#include "text/tokenizer_impl.h"

namespace godwit::text {
namespace {

constexpr std::string_view kTag = "tokenizer";
// A vocabulary has well under a million tokens; ids past this are a damaged file, not a table to allocate.
constexpr std::uint32_t kMaxId = 1u << 24;

struct Visit {
  Tokenizer::Impl& impl;
  bool id_too_large = false;
};

// Called from Rust, by ascending id: must not throw, so an id out of bounds is only remembered.
void take_token(void* context, std::uint32_t id, const char* text, std::size_t size, int special) {
  auto& visit = *static_cast<Visit*>(context);
  if (id > kMaxId) {
    visit.id_too_large = true;
    return;
  }
  for (; visit.impl.kinds.size() < id; visit.impl.kinds.push_back(TokenKind::absent)) visit.impl.texts.push_back({});
  visit.impl.texts.push_back({text, size});
  visit.impl.kinds.push_back(special ? TokenKind::special : TokenKind::plain);
}

void read_vocabulary(Tokenizer::Impl& impl) {
  RustBytes description;
  rust_call(kTag, impl.origin, [&](GodwitBytes* error) {
    return godwit_tokenizer_describe(impl.handle.get(), description.out(), error);
  });
  impl.rules = DecodingRules::from_description(parse_json(description.view(), impl.origin));
  Visit visit{impl};
  rust_call(kTag, impl.origin, [&](GodwitBytes* error) {
    return godwit_tokenizer_visit(impl.handle.get(), &take_token, &visit, error);
  });
  if (visit.id_too_large) fail(ErrorCode::corrupt_file, kTag, "{}: token id above {}", impl.origin, kMaxId);
}

// `create(handle, error)` makes the Rust half.
template <typename Create>
std::unique_ptr<Tokenizer::Impl> made_by(std::string_view origin, Create&& create) {
  auto impl = std::make_unique<Tokenizer::Impl>();
  impl->origin = std::string(origin);
  GodwitTokenizer* handle = nullptr;
  rust_call(kTag, origin, [&](GodwitBytes* error) { return create(&handle, error); });
  impl->handle.reset(handle);
  read_vocabulary(*impl);
  return impl;
}

GodwitTexts texts_of(const StringList& list) { return {list.bytes().data(), list.ends().data(), list.size()}; }

}  // namespace

TokenKind Tokenizer::Impl::need(int id) const {
  const TokenKind found = kind(id);
  if (found == TokenKind::absent) fail(ErrorCode::invalid_argument, kTag, "{}: no token has id {}", origin, id);
  return found;
}

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Tokenizer Tokenizer::from_file(const std::filesystem::path& tokenizer_json) {
  const FileMap file(tokenizer_json);
  const auto bytes = file.bytes();
  return from_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, tokenizer_json.string());
}

Tokenizer Tokenizer::from_json(std::string_view json, std::string_view origin, Construction construction) {
  return Tokenizer(made_by(origin, [&](GodwitTokenizer** handle, GodwitBytes* error) {
    return godwit_tokenizer_new(json.data(), json.size(), construction == Construction::general, handle, error);
  }));
}

Tokenizer Tokenizer::from_gguf(const GgufVocabulary& vocabulary, std::string_view origin) {
  const TokenizerParts parts = tokenizer_parts_of(vocabulary, origin);
  const std::string frame = dump_json(parts.frame);
  if (!parts.merges) return from_json(frame, origin);
  const GodwitTexts tokens = texts_of(vocabulary.tokens);
  const GodwitMerges merges{texts_of(parts.merges->texts), parts.merges->cuts.data(), parts.merges->gap};
  return Tokenizer(made_by(origin, [&](GodwitTokenizer** handle, GodwitBytes* error) {
    return godwit_tokenizer_new_bpe(frame.data(), frame.size(), &tokens, &merges, handle, error);
  }));
}

std::vector<int> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  unsigned flags = 0;
  if (options.add_special_tokens) flags |= godwit_add_special;
  if (options.parse_special_tokens) flags |= godwit_parse_special;
  GodwitIds ids{nullptr, 0};
  rust_call(kTag, "text to encode", [&](GodwitBytes* error) {
    return godwit_tokenizer_encode(impl_->handle.get(), text.data(), text.size(), flags, &ids, error);
  });
  const std::unique_ptr<GodwitIds, void (*)(GodwitIds*)> owner(
      &ids, [](GodwitIds* held) { godwit_ids_free(*held); });
  return {ids.data, ids.data + ids.size};
}

std::string Tokenizer::decode(std::span<const int> ids, bool skip_special_tokens) const {
  Detokenizer detokenizer(*this, !skip_special_tokens);
  std::string text;
  for (const int id : ids) text += detokenizer.add(id);
  return text + detokenizer.finish();
}

int Tokenizer::vocabulary_size() const { return static_cast<int>(impl_->kinds.size()); }

std::optional<int> Tokenizer::id_of(std::string_view token) const {
  std::int64_t id = -1;
  rust_call(kTag, impl_->origin, [&](GodwitBytes* error) {
    return godwit_tokenizer_id_of(impl_->handle.get(), token.data(), token.size(), &id, error);
  });
  if (id < 0) return std::nullopt;
  return static_cast<int>(id);
}

std::optional<std::string> Tokenizer::token_of(int id) const {
  if (impl_->kind(id) == TokenKind::absent) return std::nullopt;
  return std::string(impl_->texts[id]);
}

std::string Tokenizer::bytes_of(int id) const {
  return impl_->need(id) == TokenKind::special ? "" : impl_->rules.bytes_of(impl_->texts[id]);
}

bool Tokenizer::is_special(int id) const { return impl_->kind(id) == TokenKind::special; }

}  // namespace godwit::text
