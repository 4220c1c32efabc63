// What the JSON of OpenAI's chat and text completions shares: plain functions from values to JSON.
#pragma once

#include <cstdint>
#include <string>

#include "base/json.h"
#include "serve/chat_answer.h"
#include "serve/choice_stream.h"

namespace godwit::serve {

// What every object of one answer repeats.
struct AnswerHead {
  std::string id;  // "chatcmpl-..." or "cmpl-..."
  std::int64_t created = 0;
  std::string model;
  std::string fingerprint;
};

// `prefix` + 24 random letters and digits.
std::string random_id(std::string_view prefix);

Json finish_json(decode::FinishReason reason);  // "stop", "length" or null
Json usage_json(const Usage& usage);
Json timings_json(const decode::Timings& timings);

// {id, object, created, model, system_fingerprint, choices}: the frame of every answer and chunk.
Json answer_json(const AnswerHead& head, std::string_view object, Json choices);

// What follows the choices of a whole answer and of the last chunk: usage, timings and the seed in use.
void add_extras(Json& answer, const ChoiceStream& stream);
void add_extras(Json& answer, const ChatAnswer& chat);

Json completion_choice_json(int index, const std::string& text, Json logprobs, decode::FinishReason finish);

}  // namespace godwit::serve
