#include "models/bundle_text.h"

#include <array>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/file_map.h"
#include "base/json.h"
#include "models/end_tokens.h"
#include "text/builtin_templates.h"

namespace godwit::models {
namespace {

namespace fs = std::filesystem;
using checkpoint::Checkpoint;

std::string read_text_file(const fs::path& path) {
  const FileMap file(path);
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

std::optional<Json> json_beside(const Checkpoint& checkpoint, const char* name) {
  const fs::path path = checkpoint.path() / name;
  if (!fs::exists(path)) return std::nullopt;
  Json json = read_json_file(path);
  if (!json.is_object()) fail(ErrorCode::corrupt_file, "models", "{}: is not an object", path.string());
  return json;
}

text::GgufVocabulary vocabulary_of(const checkpoint::GgufTokenizer& t) {
  text::GgufVocabulary v;
  v.model = t.model;
  v.pre = t.pre;
  v.tokens = t.tokens;
  v.scores = t.scores;
  v.token_types = t.token_types;
  v.merges = t.merges;
  v.bos_id = t.bos_id;
  v.eos_id = t.eos_id;
  v.eot_id = t.eot_id;
  v.eom_id = t.eom_id;
  v.unknown_id = t.unknown_id;
  v.padding_id = t.padding_id;
  v.cls_id = t.cls_id;
  v.separator_id = t.separator_id;
  v.mask_id = t.mask_id;
  v.add_bos = t.add_bos;
  v.add_eos = t.add_eos;
  v.add_space_prefix = t.add_space_prefix;
  v.remove_extra_whitespaces = t.remove_extra_whitespaces;
  v.lowercase = t.lowercase;
  v.strip_accents = t.strip_accents;
  return v;
}

// A vocabulary of a kind that text does not know must not keep token prompts from being served.
void load_tokenizer(const Checkpoint& checkpoint, BundleText& text) {
  try {
    text.tokenizer = read_tokenizer(checkpoint);
    if (!text.tokenizer)
      text.tokenizer_problem =
          checkpoint.is_gguf() ? "the GGUF file carries no vocabulary" : "no tokenizer.json";
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported) throw;
    text.tokenizer_problem = error.what();
  }
}

// chat_template of tokenizer_config.json: a string, or a list of {name, template} whose "default" counts.
std::optional<std::string> template_of(const Json& config, const fs::path& origin) {
  const auto found = config.find("chat_template");
  if (found == config.end() || found->is_null()) return std::nullopt;
  if (found->is_string()) return found->get<std::string>();
  if (found->is_array())
    for (const Json& entry : *found)
      if (entry.is_object() && entry.contains("name") && entry["name"] == "default" &&
          entry.contains("template") && entry["template"].is_string())
        return entry["template"].get<std::string>();
  fail(ErrorCode::corrupt_file, "models", "{}: chat_template is neither a text nor a list with a 'default'",
       origin.string());
}

struct TemplateSource {
  std::string source;
  std::string origin;
};

std::optional<TemplateSource> find_template(const Checkpoint& checkpoint, const ModelOptions& options) {
  if (options.chat_template)
    return TemplateSource{read_text_file(*options.chat_template), *options.chat_template};
  const fs::path& folder = checkpoint.path();
  const fs::path jinja = folder / "chat_template.jinja";
  if (fs::exists(jinja)) return TemplateSource{read_text_file(jinja), jinja};
  for (const char* const name : {"tokenizer_config.json", "chat_template.json"})
    if (const std::optional<Json> json = json_beside(checkpoint, name))
      if (auto source = template_of(*json, folder / name))
        return TemplateSource{std::move(*source), folder / name};
  if (checkpoint.gguf_chat_template()) return TemplateSource{*checkpoint.gguf_chat_template(), folder};
  const std::string& type = checkpoint.config().model_type;
  if (const auto source = text::builtin_chat_template(type))
    return TemplateSource{std::string(*source), "built-in template of " + type};
  return std::nullopt;
}

// bos_token, eos_token, ... as template variables: the text, or the "content" of an added-token object.
void add_named_tokens(const Json& config, const fs::path& origin, Json& tokens) {
  constexpr std::array kNames = {"bos_token", "eos_token", "unk_token", "sep_token",
                                 "pad_token", "cls_token", "mask_token"};
  for (const char* const name : kNames) {
    const auto found = config.find(name);
    if (found == config.end() || found->is_null()) continue;
    const Json& token = found->is_object() && found->contains("content") ? (*found)["content"] : *found;
    if (!token.is_string())
      fail(ErrorCode::corrupt_file, "models", "{}: {} is {}, wanted a text", origin.string(), name,
           dump_json(*found));
    tokens[name] = token;
  }
  constexpr const char* kMore = "additional_special_tokens";
  if (const auto more = config.find(kMore); more != config.end() && !more->is_null()) tokens[kMore] = *more;
}

Json special_tokens(const Checkpoint& checkpoint, const std::optional<text::Tokenizer>& tokenizer) {
  Json tokens = Json::object();
  if (checkpoint.gguf_tokenizer() && tokenizer) {
    const checkpoint::GgufTokenizer& t = *checkpoint.gguf_tokenizer();
    const auto name = [&](const char* key, std::optional<int> id) {
      if (const auto token = id ? tokenizer->token_of(*id) : std::nullopt) tokens[key] = *token;
    };
    name("bos_token", t.bos_id);
    name("eos_token", t.eos_id);
    name("unk_token", t.unknown_id);
    name("pad_token", t.padding_id);
  }
  for (const char* const file : {"special_tokens_map.json", "tokenizer_config.json"})
    if (const std::optional<Json> json = json_beside(checkpoint, file))
      add_named_tokens(*json, checkpoint.path() / file, tokens);
  return tokens;
}

}  // namespace

std::optional<text::Tokenizer> read_tokenizer(const Checkpoint& checkpoint) {
  const fs::path file = checkpoint.path() / "tokenizer.json";
  if (fs::exists(file)) return text::Tokenizer::from_file(file);
  if (!checkpoint.gguf_tokenizer()) return std::nullopt;
  return text::Tokenizer::from_gguf(vocabulary_of(*checkpoint.gguf_tokenizer()), checkpoint.path().string());
}

BundleText load_text(const Checkpoint& checkpoint, const ModelOptions& options) {
  BundleText result;
  load_tokenizer(checkpoint, result);
  const Json tokens = special_tokens(checkpoint, result.tokenizer);
  if (const std::optional<TemplateSource> found = find_template(checkpoint, options))
    result.chat_template.emplace(found->source, tokens, found->origin);
  result.end_ids = end_ids({.config = checkpoint.config().end_ids,
                            .gguf = checkpoint.gguf_tokenizer(),
                            .tokenizer = result.tokenizer ? &*result.tokenizer : nullptr,
                            .eos_token = tokens.value("eos_token", ""),
                            .chat_template = result.chat_template ? result.chat_template->source() : ""});
  return result;
}

}  // namespace godwit::models
