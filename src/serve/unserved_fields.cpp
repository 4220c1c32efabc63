#include "serve/unserved_fields.h"

#include <algorithm>
#include <array>

#include "serve/request_error.h"

namespace godwit::serve {
namespace {

struct Unserved {
  std::string_view name;
  std::string_view what;
  // A JSON array of further values that ask for nothing, beside null, false, "", [] and {}.
  std::string_view neutral = "[]";
};

constexpr std::array kUnserved = {
    Unserved{"tools", "tool calling"},
    Unserved{"functions", "tool calling"},
    Unserved{"function_call", "tool calling", R"(["none", "auto"])"},
    Unserved{"tool_choice", "tool calling", R"(["none", "auto"])"},
    Unserved{"response_format", "structured output"},
    Unserved{"structured_outputs", "structured output"},
    Unserved{"guided_json", "structured output"},
    Unserved{"guided_regex", "structured output"},
    Unserved{"guided_choice", "structured output"},
    Unserved{"guided_grammar", "structured output"},
    Unserved{"grammar", "structured output"},
    Unserved{"json_schema", "structured output"},
    Unserved{"audio", "audio output"},
    Unserved{"modalities", "output other than text", R"([["text"]])"},
    Unserved{"adapter", "choosing an adapter"},
    Unserved{"lora", "choosing an adapter"},
    Unserved{"continue_final_message", "continuing the last message"},
    Unserved{"thinking_token_budget", "a thinking budget"},
    Unserved{"reasoning_budget", "a thinking budget", "[-1]"},
    Unserved{"suffix", "filling in the middle"},
    Unserved{"use_beam_search", "beam search"},
    Unserved{"min_tokens", "a least number of tokens", "[0]"},
    Unserved{"stop_token_ids", "stopping at token ids"},
    Unserved{"include_stop_str_in_output", "returning the stop string"},
    Unserved{"return_token_ids", "returning token ids"},
    Unserved{"bad_words", "banning words"},
    Unserved{"allowed_token_ids", "an allow list of tokens"},
    Unserved{"typical_p", "typical sampling", "[1]"},
    Unserved{"top_n_sigma", "top-n-sigma sampling", "[-1]"},
    Unserved{"dynatemp_range", "dynamic temperature", "[0]"},
    Unserved{"dry_multiplier", "DRY", "[0]"},
    Unserved{"mirostat", "mirostat", "[0]"},
    Unserved{"samplers", "choosing the order of samplers"},
    Unserved{"sampler_order", "choosing the order of samplers"},
};

bool asks_for_nothing(const Json& value, std::string_view neutral) {
  if (value == false || value == "" || (value.is_structured() && value.empty())) return true;
  const Json others = Json::parse(neutral);
  return std::ranges::find(others, value) != others.end();  // 1 == 1.0 in this library
}

bool is_text_format(const Json& value) {
  return value.is_object() && value.contains("type") && value["type"] == "text";
}

}  // namespace

void refuse_unserved_fields(const JsonFields& in) {
  for (const Unserved& field : kUnserved) {
    const Json* value = in.find(field.name);
    if (!value || asks_for_nothing(*value, field.neutral)) continue;
    if (field.name == "response_format" && is_text_format(*value)) continue;
    unserved_field(in.path_of(field.name), field.what);
  }
}

}  // namespace godwit::serve
