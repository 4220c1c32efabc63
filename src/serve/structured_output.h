// What an answer must be, from the fields of every API that can say so.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "decode/reasoning_constraint.h"
#include "decode/token_filter.h"
#include "serve/http.h"
#include "serve/json_fields.h"
#include "serve/output_wish.h"
#include "serve/served_model.h"
#include "text/grammar.h"

namespace godwit::serve {

enum class OutputFields {
  openai,  // response_format, structured_outputs, guided_*, grammar, json_schema: chat and text completions
  responses,  // text.format
  anthropic,  // output_config.format, output_format
  ollama,     // format
};

// Nullopt: anything; null asks for nothing, and so do the empty texts that llama.cpp's and Ollama's clients send as `grammar`
// and `format`. Two fields that ask, a kind that there is not and a value of the wrong shape are
// RequestError 400.
std::optional<OutputWish> read_structured_output(const JsonFields& in, OutputFields fields);

// Ready to match. What is wrong with the grammar is RequestError 400 with the place in it, and the wish's field. May build
// the model's vocabulary.
std::shared_ptr<const text::CompiledGrammar> compile_output(const ServedModel& model, const OutputWish& wish);

// Header "warning": what of the schema the answer is not held to. Nothing where all is.
void add_notes(const text::CompiledGrammar& grammar, Headers& headers);

// How reasoning goes before the output; `close` empty: there is none.
struct ReasoningBefore {
  std::string open = {}, close = {};
  decode::ReasoningStart start = decode::ReasoningStart::open;
  int budget = -1;
};

// `grammar` null: anything. Null where nothing is asked for.
std::shared_ptr<const decode::TokenConstraint> constraint_of(
    const ServedModel& model, std::shared_ptr<const text::CompiledGrammar> grammar,
    const ReasoningBefore& reasoning = {});

}  // namespace godwit::serve
