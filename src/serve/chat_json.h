// The JSON shapes of OpenAI's chat answers, whole and in chunks.
#pragma once

#include <vector>

#include "serve/chat_message.h"
#include "serve/openai_json.h"

namespace godwit::serve {

// How a request wants its answer written.
struct ChatShape {
  bool is_legacy = false;       // calls as `function_call`
  bool shows_reasoning = true;  // as `reasoning_content` and `reasoning`, the names that clients look for
  bool returns_token_ids = false;
};

// {index, message, logprobs, finish_reason, token_ids?}; `logprobs` as of chat_logprobs_json, or null.
Json chat_choice_json(int index, const ChatMessage& message, Json logprobs, const ChatShape& shape);

// The deltas of one step's pieces, in order; neighbours of one kind are one delta. What carries content has
// the key `content`, other deltas do not.
std::vector<Json> chat_deltas_json(const std::vector<text::TurnPiece>& pieces, const ChatShape& shape);

Json chat_chunk_choice_json(int index, Json delta, Json logprobs, const Json& finish);
Json chat_finish_json(std::optional<ChatFinish> finish, const ChatShape& shape);
// {content: [...], refusal: null}
Json chat_logprobs_json(const std::vector<LogprobEntry>& entries, const text::Tokenizer& tokenizer);

}  // namespace godwit::serve
