// Chats brought to what their template can say, so that no text is lost and none has to be refused without need.
#pragma once

#include "text/turn/template_traits.h"

namespace godwit::text {

struct NormaliseOptions {
  // Turns that the template would refuse are merged with others: system messages with the next turn of the user or
  // the first system message, turns of the user in a row with each other. Off: the template's own error tells.
  bool merges_refused = false;
};

// In OpenAI's form. Always: developer becomes system where the template does not know it, absent content "", parts of
// text one string, arguments what the template takes. What the template does not show is written where it can be seen:
// several calls of a turn as turns of their own, calls in the model's format, results as turns of the user, tools as a
// description with the generic format, and turns as above that would be left out in silence.
ChatInput normalise_chat(ChatInput input, const TemplateTraits& traits, const TurnFormat& format,
                         const NormaliseOptions& options = {});

// Whether the model is asked for calls in the generic format, since its template shows no tools.
bool asks_generically(const TemplateTraits& traits);

}  // namespace godwit::text
