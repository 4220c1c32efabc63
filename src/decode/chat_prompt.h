// The tokens of a chat. Control tokens that the template writes become control tokens; where a message spells
// one, it stays plain characters, so that a user or a tool's result cannot forge a turn.
#pragma once

#include <vector>

#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace godwit::decode {

// Renders and encodes. The assistant's own messages are taken as they are: templates look for control tokens
// in them (to cut reasoning out, say). Throws what rendering and encoding throw.
std::vector<int> encode_chat(const text::Tokenizer& tokenizer, const text::ChatTemplate& chat_template,
                             text::ChatInput input);

}  // namespace godwit::decode
