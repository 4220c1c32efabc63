// The fields that chat and text completions share: how tokens are chosen, when an answer ends, how many there
// are.
#pragma once

#include "decode/generation.h"
#include "serve/json_fields.h"
#include "serve/served_model.h"

namespace godwit::serve {

inline constexpr int kMaxStopStrings = 16;
inline constexpr int kMaxChoices = 16;
inline constexpr int kMaxTopLogprobs = 20;
inline constexpr std::size_t kMostTextBytes = 1024;  // of one text among tokens: a stop string, a word that may not come
inline constexpr std::size_t kMostBiasTexts = 256;

// What every API spells alike, where it has it.
struct CommonFields {
  decode::SamplingParams sampling;
  bool ignore_eos = false;
};

struct StreamFields {
  bool stream = false;
  bool include_usage = false;
};

// Reads the shared fields; what the request leaves out comes from the model's
// defaults. Throws RequestError.
CommonFields read_common_fields(const JsonFields& in, const ServedModel& model);

// stream and stream_options; throws RequestError.
StreamFields read_stream(const JsonFields& in);

// n, and the texts that end an answer: a string or an array of strings, empty ones left out. Throw RequestError.
int read_choices(const JsonFields& in);
std::vector<std::string> read_stop(const JsonFields& in, std::string_view name = "stop");

// Throws RequestError for more than kMostTextBytes.
void check_text(std::string_view param, const std::string& text);

}  // namespace godwit::serve
