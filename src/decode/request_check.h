// What can be refused of a request before any work starts. From any thread.
#pragma once

#include <span>

#include "decode/generation.h"
#include "models/model_bundle.h"

namespace godwit::decode {

// Throws Error{invalid_argument, context_overflow}: a prompt of known tokens that leaves room for `answer`
// more.
void validate_prompt(const models::ModelBundle& bundle, std::span<const int> prompt, int answer);

// Everything about a request that depends on the model alone, and whether its bars leave a first token; see Engine::submit.
void validate_request(const models::ModelBundle& bundle, const GenerationRequest& request);

}  // namespace godwit::decode
