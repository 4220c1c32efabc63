// What a chat template can say, found out once by rendering small chats and looking for their words.
#pragma once

#include "text/chat_template.h"
#include "text/turn/turn_format.h"

namespace godwit::text {

enum class Support {
  shown,    // the text is in the prompt
  dropped,  // the template leaves it out in silence
  refused,  // the template raises an exception
};

struct TemplateTraits {
  Support system = Support::shown;       // a system message in front
  Support late_system = Support::shown;  // one between other turns
  Support two_users = Support::shown;    // two turns of the user in a row
  Support tools = Support::shown;        // the request's tools
  Support calls = Support::shown;        // calls in earlier turns
  Support many_calls = Support::shown;   // more than one in a turn
  Support results = Support::shown;      // messages of the role tool
  bool knows_developer = false;
  bool needs_text_arguments = false;  // arguments as JSON text, where other templates take an object
  bool needs_descriptions = false;    // a tool without one breaks it
  bool needs_types = false;           // every schema must name one type
};

TemplateTraits template_traits(const ChatTemplate& chat_template);

}  // namespace godwit::text
