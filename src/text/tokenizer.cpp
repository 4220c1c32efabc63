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
  std::vector<TokenEntry>& tokens;
  bool id_too_large = false;
};

// Called from Rust: must not throw, so an id out of bounds is only remembered.
void take_token(void* context, std::uint32_t id, const char* text, std::size_t size, int special) {
  auto& visit = *static_cast<Visit*>(context);
  if (id > kMaxId) {
    visit.id_too_large = true;
    return;
  }
  if (id >= visit.tokens.size()) visit.tokens.resize(id + 1);
  visit.tokens[id] = {.text = std::string(text, size), .bytes = {}, .exists = true, .special = special != 0};
}

void read_vocabulary(Tokenizer::Impl& impl) {
  RustBytes description;
  rust_call(kTag, impl.origin, [&](GodwitBytes* error) {
    return godwit_tokenizer_describe(impl.handle.get(), description.out(), error);
  });
  impl.rules = DecodingRules::from_description(parse_json(description.view(), impl.origin));
  Visit visit{impl.tokens};
  rust_call(kTag, impl.origin, [&](GodwitBytes* error) {
    return godwit_tokenizer_visit(impl.handle.get(), &take_token, &visit, error);
  });
  if (visit.id_too_large) fail(ErrorCode::corrupt_file, kTag, "{}: token id above {}", impl.origin, kMaxId);
  for (std::size_t id = 0; id < impl.tokens.size(); ++id) {
    TokenEntry& token = impl.tokens[id];
    if (!token.exists) continue;
    impl.ids.emplace(token.text, static_cast<int>(id));
    if (!token.special) token.bytes = impl.rules.bytes_of(token.text);
  }
}

}  // namespace

const TokenEntry& Tokenizer::Impl::entry(int id) const {
  if (id < 0 || static_cast<std::size_t>(id) >= tokens.size() || !tokens[id].exists)
    fail(ErrorCode::invalid_argument, kTag, "{}: no token has id {}", origin, id);
  return tokens[id];
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

Tokenizer Tokenizer::from_json(std::string_view json, std::string_view origin) {
  auto impl = std::make_unique<Impl>();
  impl->origin = std::string(origin);
  GodwitTokenizer* handle = nullptr;
  rust_call(kTag, origin, [&](GodwitBytes* error) {
    return godwit_tokenizer_new(json.data(), json.size(), &handle, error);
  });
  impl->handle.reset(handle);
  read_vocabulary(*impl);
  return Tokenizer(std::move(impl));
}

Tokenizer Tokenizer::from_gguf(const GgufVocabulary& vocabulary, std::string_view origin) {
  return from_json(tokenizer_json_of(vocabulary, origin), origin);
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

int Tokenizer::vocabulary_size() const { return static_cast<int>(impl_->tokens.size()); }

std::optional<int> Tokenizer::id_of(std::string_view token) const {
  const auto found = impl_->ids.find(std::string(token));
  if (found == impl_->ids.end()) return std::nullopt;
  return found->second;
}

std::optional<std::string> Tokenizer::token_of(int id) const {
  if (id < 0 || id >= vocabulary_size() || !impl_->tokens[id].exists) return std::nullopt;
  return impl_->tokens[id].text;
}

std::string Tokenizer::bytes_of(int id) const { return impl_->entry(id).bytes; }

bool Tokenizer::is_special(int id) const {
  return id >= 0 && id < vocabulary_size() && impl_->tokens[id].special;
}

}  // namespace godwit::text
