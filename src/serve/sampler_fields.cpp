#include "serve/sampler_fields.h"

#include <limits>

#include "decode/sampling_text.h"
#include "serve/request_error.h"
#include "serve/sampling_fields.h"

namespace godwit::serve {
namespace {

constexpr double kAnyNumber = std::numeric_limits<double>::max();

struct Number {
  const char* name;
  double decode::SamplingParams::*target;
  double least, most;
};

struct Integer {
  const char* name;
  int decode::SamplingParams::*target;
  std::int64_t least;
};

using P = decode::SamplingParams;

constexpr Number kNumbers[] = {{"typical_p", &P::typical_p, 0, 1},
                               {"typ_p", &P::typical_p, 0, 1},
                               {"top_n_sigma", &P::top_n_sigma, -kAnyNumber, kAnyNumber},
                               {"dynatemp_range", &P::dynatemp_range, 0, kAnyNumber},
                               {"dynatemp_exponent", &P::dynatemp_exponent, 0, kAnyNumber},
                               {"dry_multiplier", &P::dry_multiplier, 0, kAnyNumber},
                               {"dry_base", &P::dry_base, 0, kAnyNumber},
                               {"mirostat_tau", &P::mirostat_tau, 0, kAnyNumber},
                               {"mirostat_eta", &P::mirostat_eta, 0, 1}};
constexpr Integer kIntegers[] = {{"dry_allowed_length", &P::dry_allowed_length, 0},
                                 {"dry_penalty_last_n", &P::dry_window, -1}};

std::vector<std::string> strings_of(const JsonFields& in, std::string_view name) {
  std::vector<std::string> texts;
  const Json* list = in.array(name);
  if (!list) return texts;
  for (const Json& text : *list) {
    if (!text.is_string()) bad_field(in.path_of(name), "needs strings, got {}", shown(text));
    check_text(in.path_of(name), text.get_ref<const std::string&>());
    texts.push_back(text);
  }
  return texts;
}

void read_dry_breakers(const JsonFields& in, const ServedModel& model, decode::SamplingParams& sampling) {
  const bool is_given = in.find("dry_sequence_breakers") != nullptr;
  const std::vector<std::string> given = strings_of(in, "dry_sequence_breakers");
  if (given.size() > kMaxBreakers)
    bad_field(in.path_of("dry_sequence_breakers"), "may hold at most {} texts, got {}", kMaxBreakers, given.size());
  if (sampling.dry_multiplier <= 0) return;
  sampling.dry_breakers =
      decode::tokens_holding(model.need_tokenizer(), is_given ? given : decode::default_dry_breakers());
}

void read_bad_words(const JsonFields& in, const ServedModel& model, decode::SamplingParams& sampling) {
  const std::vector<std::string> words = strings_of(in, "bad_words");
  if (words.size() > kMaxBadWords)
    bad_field(in.path_of("bad_words"), "may hold at most {} words, got {}", kMaxBadWords, words.size());
  for (const std::string& word : words) {
    if (word.empty()) bad_field(in.path_of("bad_words"), "holds an empty word");
    for (auto& spelling : decode::spellings_of(model.need_tokenizer(), word))
      sampling.bad_words.push_back(spelling);
  }
}

void read_allowed_ids(const JsonFields& in, const ServedModel& model, decode::SamplingParams& sampling) {
  const Json* list = in.array("allowed_token_ids");
  if (!list) return;
  const std::string param = in.path_of("allowed_token_ids");
  if (list->empty()) bad_field(param, "is empty: no token could come");
  sampling.allowed_ids.emplace();
  for (const Json& id : *list) {
    const auto token = as_integer(id);
    if (!token) bad_field(param, "needs token ids, got {}", shown(id));
    if (*token < 0 || *token >= model.vocabulary)
      bad_field(param, "names token {}, outside the vocabulary of {} tokens", *token, model.vocabulary);
    sampling.allowed_ids->push_back(static_cast<int>(*token));
  }
}

// A list of names, a preset's name, or llama.cpp's letters.
decode::SamplerOrder order_of(const JsonFields& in, std::string_view name, const Json& value) {
  try {
    if (value.is_array()) return decode::sampler_order(strings_of(in, name));
    if (!value.is_string())
      bad_field(in.path_of(name), "must be names of samplers or a preset's, got {}", shown(value));
    const auto& text = value.get_ref<const std::string&>();
    const bool is_letters = text.find_first_not_of("edskypmxt") == std::string::npos;
    return is_letters ? decode::sampler_order_of_letters(text) : decode::sampler_preset(text);
  } catch (const RequestError&) {
    throw;
  } catch (const Error& e) {
    throw RequestError(ErrorCode::invalid_argument, plain_message(e.what()),
                       {.param = in.path_of(name), .code = "invalid_value"});
  }
}

void read_order(const JsonFields& in, decode::SamplingParams& sampling) {
  for (const auto* name : {"samplers", "sampler_order"}) {
    const Json* value = in.find(name);
    if (value && *value != "" && *value != Json::array()) sampling.order = order_of(in, name, *value);
  }
}

}  // namespace

void read_sampler_fields(const JsonFields& in, const ServedModel& model, decode::SamplingParams& sampling) {
  for (const Number& field : kNumbers)
    if (const auto value = in.number(field.name, field.least, field.most)) sampling.*field.target = *value;
  for (const Integer& field : kIntegers)
    if (const auto value = in.count(field.name, field.least)) sampling.*field.target = *value;
  if (const auto version = in.integer("mirostat", 0, 2)) sampling.mirostat = static_cast<int>(*version);
  read_dry_breakers(in, model, sampling);
  read_bad_words(in, model, sampling);
  read_allowed_ids(in, model, sampling);
  read_order(in, sampling);
}

}  // namespace godwit::serve
