#include "cache/kv_policy.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/unique_json.h"

namespace godwit::cache {
namespace {

struct Spelling {
  std::string_view text;
  DenseType type;
};

// The first spelling of a type is the one that to_string() writes.
constexpr std::array kSpellings = {
    Spelling{"dense", DenseType::model},     Spelling{"dense:model", DenseType::model},
    Spelling{"dense:bf16", DenseType::bf16}, Spelling{"dense:f16", DenseType::f16},
    Spelling{"dense:f32", DenseType::f32},
};

constexpr std::array kAffineBits = {2, 3, 4, 5, 6, 8};
constexpr std::array kAffineGroups = {32, 64, 128};
constexpr int kAffineGroup = 64;
constexpr std::array kTurboKeyBits = {2, 4, 5, 8};
constexpr std::array kTurboValueBits = {2, 3, 4, 5, 8};

constexpr std::string_view kChoices =
    "dense, dense:bf16, dense:f16, dense:f32, affine:BITS[:GROUP] with 2, 3, 4, 5, 6 or 8 bits in groups of "
    "32, 64 or 128, turbo:KEY_BITS:VALUE_BITS[:parity] with keys of 2, 4, 5 or 8 bits and values of 2, 3, 4, "
    "5 or 8, and config";

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> fields;
  for (auto colon = text.find(':'); colon != std::string_view::npos; colon = text.find(':')) {
    fields.push_back(text.substr(0, colon));
    text.remove_prefix(colon + 1);
  }
  fields.push_back(text);
  return fields;
}

// One of `choices` in its only spelling: "04" and "+4" are not numbers here.
template <std::size_t N>
std::optional<int> one_of(std::string_view text, const std::array<int, N>& choices) {
  const auto found =
      std::ranges::find_if(choices, [text](int choice) { return text == std::to_string(choice); });
  if (found == choices.end()) return std::nullopt;
  return *found;
}

std::optional<Codec> affine_codec(const std::vector<std::string_view>& fields) {
  if (fields.size() < 2 || fields.size() > 3) return std::nullopt;
  const auto bits = one_of(fields[1], kAffineBits);
  const auto group = fields.size() == 3 ? one_of(fields[2], kAffineGroups) : kAffineGroup;
  if (!bits || !group) return std::nullopt;
  return Codec{.kind = CodecKind::affine, .bits = *bits, .group = *group};
}

std::optional<Codec> turbo_codec(const std::vector<std::string_view>& fields) {
  if (fields.size() < 3 || fields.size() > 4) return std::nullopt;
  const auto keys = one_of(fields[1], kTurboKeyBits);
  const auto values = one_of(fields[2], kTurboValueBits);
  const bool parity = fields.size() == 4;
  if (!keys || !values || (parity && fields[3] != "parity")) return std::nullopt;
  return Codec{.kind = CodecKind::turbo, .key_bits = *keys, .value_bits = *values, .parity = parity};
}

// Numbers of a kv_config.json: whole, and of a size that cannot wrap when they become an int.
int whole_number(const Json& entry, const char* key, const std::string& origin) {
  const Json& value = entry.at(key);
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > 1'000'000)
    fail(ErrorCode::corrupt_file, "kv_config", "{}: {} is {}, not a whole number from 0 on", origin, key,
         dump_json(value));
  return value.get<int>();
}

Codec codec_of_entry(const Json& entry, int layer, const std::string& origin) {
  const int bits = whole_number(entry, "bits", origin);
  const int group = entry.contains("group_size") ? whole_number(entry, "group_size", origin) : kAffineGroup;
  if (std::ranges::find(kAffineBits, bits) == kAffineBits.end())
    fail(ErrorCode::unsupported, "kv_config", "{}: layer {} asks for {} bits; there are 2, 3, 4, 5, 6 and 8",
         origin, layer, bits);
  if (std::ranges::find(kAffineGroups, group) == kAffineGroups.end())
    fail(ErrorCode::unsupported, "kv_config", "{}: layer {} asks for groups of {}; there are 32, 64 and 128",
         origin, layer, group);
  return {.kind = CodecKind::affine, .bits = bits, .group = group};
}

Json parsed_list(std::string_view json, const std::string& origin) {
  Json list;
  try {
    list = parse_unique_json(json, origin);
  } catch (const Error& e) {
    throw Error(ErrorCode::corrupt_file, "kv_config",
                std::string_view(e.what()).substr(std::string_view("[json] ").size()));
  }
  if (!list.is_array())
    fail(ErrorCode::corrupt_file, "kv_config", "{}: a list of layers is expected, not {}", origin,
         list.type_name());
  if (list.empty()) fail(ErrorCode::corrupt_file, "kv_config", "{}: the list names no layer", origin);
  return list;
}

}  // namespace

const Codec& KvPolicy::codec_of(int layer) const {
  const auto found = layers.find(layer);
  return found == layers.end() ? codec : found->second;
}

KvPolicy parse_kv_policy(std::string_view text) {
  const auto spelling = std::ranges::find(kSpellings, text, &Spelling::text);
  if (spelling != kSpellings.end()) return {.dense = spelling->type};
  if (text == "config") return {.per_layer = true};
  const auto fields = split(text);
  std::optional<Codec> codec;
  if (fields[0] == "affine") codec = affine_codec(fields);
  if (fields[0] == "turbo") codec = turbo_codec(fields);
  if (!codec) fail(ErrorCode::invalid_argument, "kv", "no KV policy '{}'; there are {}", text, kChoices);
  return {.codec = *codec};
}

std::string to_string(const Codec& codec) {
  switch (codec.kind) {
    case CodecKind::dense:
      return "dense";
    case CodecKind::affine:
      return fmt::format("affine:{}:{}", codec.bits, codec.group);
    case CodecKind::turbo:
      return fmt::format("turbo:{}:{}{}", codec.key_bits, codec.value_bits, codec.parity ? ":parity" : "");
  }
  GODWIT_CHECK(false, "codec {}", static_cast<int>(codec.kind));
}

std::string to_string(const KvPolicy& policy) {
  if (policy.per_layer) return "config";
  if (policy.codec.kind != CodecKind::dense) return to_string(policy.codec);
  return std::string(std::ranges::find(kSpellings, policy.dense, &Spelling::type)->text);
}

void read_kv_config(KvPolicy& policy, std::string_view json, const std::string& origin, int owning_layers) {
  std::map<int, Codec> layers;
  for (const Json& entry : parsed_list(json, origin)) {
    if (!entry.is_object() || !entry.contains("layer_idx") || !entry.contains("bits"))
      fail(ErrorCode::corrupt_file, "kv_config", "{}: an entry without layer_idx and bits: {}", origin,
           dump_json(entry));
    const int layer = whole_number(entry, "layer_idx", origin);
    if (layer >= owning_layers)
      fail(ErrorCode::corrupt_file, "kv_config", "{}: layer {} of a model whose state has {} layers", origin,
           layer, owning_layers);
    if (!layers.emplace(layer, codec_of_entry(entry, layer, origin)).second)
      fail(ErrorCode::corrupt_file, "kv_config", "{}: layer {} is named twice", origin, layer);
  }
  policy.layers = std::move(layers);
}

}  // namespace godwit::cache
