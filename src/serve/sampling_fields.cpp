#include "serve/sampling_fields.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "serve/request_error.h"
#include "serve/sampler_fields.h"

namespace godwit::serve {
namespace {

constexpr double kAnyNumber = std::numeric_limits<double>::max();
// top_p 0 means "the likeliest token": any mass below that of one token says the same and needs no special
// case below.
constexpr double kTinyMass = 1e-9;

void set(double& target, std::optional<double> value) {
  if (value) target = *value;
}

void set(int& target, std::optional<int> value) {
  if (value) target = *value;
}

// Any 64-bit integer is a seed, negative ones by their bits; -1 asks for a random one.
std::optional<std::uint64_t> read_seed(const JsonFields& in) {
  const Json* value = in.find("seed");
  if (!value) return std::nullopt;
  if (value->is_number_unsigned()) return value->get<std::uint64_t>();
  const auto seed = as_integer(*value);
  if (!seed) bad_field(in.path_of("seed"), "must be a 64-bit integer, got {}", shown(*value));
  if (*seed == -1) return std::nullopt;
  return static_cast<std::uint64_t>(*seed);
}

int known_token(std::int64_t token, std::string_view param, int vocabulary) {
  if (token < 0 || token >= vocabulary)
    bad_field(param, "names token {}, outside the vocabulary of {} tokens", token, vocabulary);
  return static_cast<int>(token);
}

// The key of an object: digits.
int bias_key(const std::string& text, std::string_view param, int vocabulary) {
  std::int64_t parsed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
  if (error != std::errc() || end != text.data() + text.size())
    bad_field(param, "needs token ids, got {}", shown(Json(text)));
  return known_token(parsed, param, vocabulary);
}

// The first of a pair: an id, or a text whose tokens are all meant.
std::vector<int> bias_tokens(const Json& first, std::string_view param, const ServedModel& model) {
  if (first.is_string()) {
    check_text(param, first.get_ref<const std::string&>());
    return model.need_tokenizer().encode(first.get_ref<const std::string&>(),
                                         {.add_special_tokens = false, .parse_special_tokens = false});
  }
  const auto token = as_integer(first);
  if (!token) bad_field(param, "needs token ids or texts, got {}", shown(first));
  return {known_token(*token, param, model.vocabulary)};
}

float bias_value(const Json& value, std::string_view param) {
  if (value.is_boolean() && !value.get<bool>()) return decode::SamplingParams::kBan;
  if (!value.is_number()) bad_field(param, "needs numbers within -100..100, got {}", shown(value));
  const double bias = value.get<double>();
  if (!(std::abs(bias) <= 100)) bad_field(param, "must be within -100..100, got {}", shown(value));
  return static_cast<float>(bias);
}

// {"id": bias} as OpenAI writes it, or llama.cpp's [[id or text, bias], ...]; a bias of false bans the tokens.
std::map<int, float> read_logit_bias(const JsonFields& in, const ServedModel& model) {
  std::map<int, float> biases;
  const Json* value = in.find("logit_bias");
  if (!value) return biases;
  const std::string param = in.path_of("logit_bias");
  if (value->is_object()) {
    for (const auto& [id, bias] : value->items())
      biases[bias_key(id, param, model.vocabulary)] = bias_value(bias, param);
  } else if (value->is_array()) {
    std::size_t texts = 0;
    for (const Json& pair : *value) {
      if (!pair.is_array() || pair.size() != 2)
        bad_field(param, "needs pairs of id and bias, got {}", shown(pair));
      if (pair[0].is_string() && ++texts > kMostBiasTexts)
        bad_field(param, "may hold at most {} texts; ids are not limited", kMostBiasTexts);
      for (const int token : bias_tokens(pair[0], param, model)) biases[token] = bias_value(pair[1], param);
    }
  } else {
    bad_field(param, "must be an object, got {}", shown(*value));
  }
  return biases;
}

void read_penalties(const JsonFields& in, decode::SamplingParams& sampling) {
  // Two names each: vLLM and mlx-lm say "repetition", llama.cpp says "repeat".
  for (const auto* name : {"repeat_penalty", "repetition_penalty"})
    set(sampling.repetition_penalty, in.number(name, std::numeric_limits<double>::min(), kAnyNumber));
  for (const auto* name : {"repeat_last_n", "repetition_context_size"})
    set(sampling.penalty_window, in.count(name, -1));
  set(sampling.presence_penalty, in.number("presence_penalty", -2, 2));
  set(sampling.frequency_penalty, in.number("frequency_penalty", -2, 2));
}

decode::SamplingParams read_sampling(const JsonFields& in, const ServedModel& model) {
  decode::SamplingParams sampling = model.sampling;
  set(sampling.temperature, in.number("temperature", 0, kAnyNumber));
  set(sampling.top_p, in.number("top_p", 0, 1));
  if (sampling.top_p == 0) sampling.top_p = kTinyMass;
  set(sampling.top_k, in.count("top_k", -1));
  if (sampling.top_k == -1) sampling.top_k = 0;
  set(sampling.min_p, in.number("min_p", 0, 1));
  set(sampling.xtc_probability, in.number("xtc_probability", 0, 1));
  set(sampling.xtc_threshold, in.number("xtc_threshold", 0, 1));
  read_penalties(in, sampling);
  sampling.logit_bias = read_logit_bias(in, model);
  read_sampler_fields(in, model, sampling);
  sampling.seed = read_seed(in);
  return sampling;
}

}  // namespace

void check_text(std::string_view param, const std::string& text) {
  if (text.size() > kMostTextBytes)
    bad_field(param, "holds a text of {} bytes: at most {} are allowed", text.size(), kMostTextBytes);
}

std::vector<std::string> read_stop(const JsonFields& in, std::string_view name) {
  std::vector<std::string> stops;
  const Json* value = in.find(name);
  if (!value) return stops;
  const std::string param = in.path_of(name);
  const Json list = value->is_array() ? *value : Json::array({*value});
  for (const Json& stop : list) {
    if (!stop.is_string()) bad_field(param, "must be a string or an array of strings, got {}", shown(stop));
    check_text(param, stop.get_ref<const std::string&>());
    if (!stop.get_ref<const std::string&>().empty()) stops.push_back(stop);
  }
  if (stops.size() > kMaxStopStrings)
    bad_field(param, "may hold at most {} strings, got {}", kMaxStopStrings, stops.size());
  return stops;
}

int read_choices(const JsonFields& in) {
  return static_cast<int>(in.integer("n", 1, kMaxChoices).value_or(1));
}

CommonFields read_common_fields(const JsonFields& in, const ServedModel& model) {
  CommonFields common;
  common.sampling = read_sampling(in, model);
  common.ignore_eos = in.boolean("ignore_eos").value_or(false);
  return common;
}

StreamFields read_stream(const JsonFields& in) {
  StreamFields fields{.stream = in.boolean("stream").value_or(false)};
  if (const Json* options = in.object("stream_options"))
    fields.include_usage =
        JsonFields(*options, in.path_of("stream_options")).boolean("include_usage").value_or(false);
  return fields;
}

}  // namespace godwit::serve
