#include <limits>

#include "base/error.h"
#include "checkpoint/gguf_model.h"

namespace godwit::checkpoint {
namespace {

[[noreturn]] void refuse(const GgufMetadata& metadata, std::string_view key, std::int64_t value,
                         std::string_view wanted) {
  fail(ErrorCode::corrupt_file, "gguf", "{}: tokenizer.ggml.{} is {}, wanted {}", metadata.origin(), key,
       value, wanted);
}

// A token id inside the vocabulary.
std::optional<int> token_id(const GgufMetadata& metadata, std::string_view key, std::size_t tokens) {
  const auto id = metadata.integer(fmt::format("tokenizer.ggml.{}", key));
  if (!id || *id == -1 || *id == std::numeric_limits<std::uint32_t>::max())
    return std::nullopt;  // two ways to say none
  if (*id < 0 || static_cast<std::uint64_t>(*id) >= tokens)
    refuse(metadata, key, *id, fmt::format("below {}", tokens));
  return static_cast<int>(*id);
}

template <typename T, typename From>
std::vector<T> one_per_token(const GgufMetadata& metadata, std::string_view key,
                             const std::vector<From>& values, std::size_t tokens) {
  if (values.size() != tokens)
    refuse(metadata, key, static_cast<std::int64_t>(values.size()), fmt::format("{} entries", tokens));
  return std::vector<T>(values.begin(), values.end());
}

}  // namespace

std::optional<GgufTokenizer> take_gguf_tokenizer(GgufMetadata& metadata) {
  const auto model = metadata.string("tokenizer.ggml.model");
  if (!model || !metadata.strings("tokenizer.ggml.tokens")) return std::nullopt;
  GgufTokenizer result;
  result.model = *model;
  result.pre = metadata.string("tokenizer.ggml.pre").value_or("");
  result.tokens = metadata.take_strings("tokenizer.ggml.tokens").value();
  const std::size_t count = result.tokens.size();
  if (const auto scores = metadata.numbers("tokenizer.ggml.scores"))
    result.scores = one_per_token<float>(metadata, "scores", *scores, count);
  if (const auto types = metadata.integers("tokenizer.ggml.token_type"))
    result.token_types = one_per_token<int>(metadata, "token_type", *types, count);
  result.merges = metadata.take_strings("tokenizer.ggml.merges").value_or(StringList());
  result.bos_id = token_id(metadata, "bos_token_id", count);
  result.eos_id = token_id(metadata, "eos_token_id", count);
  result.eot_id = token_id(metadata, "eot_token_id", count);
  result.eom_id = token_id(metadata, "eom_token_id", count);
  result.unknown_id = token_id(metadata, "unknown_token_id", count);
  result.padding_id = token_id(metadata, "padding_token_id", count);
  result.cls_id = token_id(metadata, "cls_token_id", count);
  result.separator_id = token_id(metadata, "seperator_token_id", count);  // as the format spells it
  if (!result.separator_id) result.separator_id = token_id(metadata, "separator_token_id", count);
  result.mask_id = token_id(metadata, "mask_token_id", count);
  result.add_bos = metadata.boolean("tokenizer.ggml.add_bos_token");
  result.add_eos = metadata.boolean("tokenizer.ggml.add_eos_token");
  result.add_space_prefix = metadata.boolean("tokenizer.ggml.add_space_prefix");
  result.remove_extra_whitespaces = metadata.boolean("tokenizer.ggml.remove_extra_whitespaces");
  result.lowercase = metadata.boolean("tokenizer.ggml.normalizer.lowercase");
  result.strip_accents = metadata.boolean("tokenizer.ggml.normalizer.strip_accents");
  return result;
}

}  // namespace godwit::checkpoint
