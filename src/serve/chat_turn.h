// What a chat asks of the model, whichever API it came by: the turn to be made.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "serve/generation_plan.h"
#include "serve/output_wish.h"
#include "serve/served_model.h"
#include "text/turn/turn_format.h"

namespace godwit::serve {

struct ToolChoice {
  enum class Kind { automatic, none, required };
  Kind kind = Kind::automatic;
  std::vector<std::string> names = {};  // of the tools that may be called; empty: all
  bool is_parallel = true;              // false: at most one call
};

struct ReasoningWish {
  std::optional<bool> is_on = {};  // absent: what the template does by itself
  std::string effort = {};         // minimal … max; empty: the model's own
  int budget = -1;                 // most tokens of reasoning; -1: no limit
};

struct ChatTurn {
  Json messages = Json::array();  // OpenAI's form, content as text, arguments as objects (chat_messages.h)
  std::vector<text::ToolSpec> tools = {};
  ToolChoice tool_choice = {};
  ReasoningWish reasoning = {};
  std::optional<OutputWish> output = {};  // what the content must be
  Json template_variables = Json::object();
  Json documents = nullptr;  // of templates that know them; null: none
  bool adds_generation_prompt = true;
  bool continues_final_message = false;  // the last message is the beginning of the answer
  int choices = 1;
  decode::GenerationRequest common = {};  // prompt, choices and constraint unset
};

// The tools that the answer may call: none with ToolChoice::none, of an allow list those on it.
std::vector<text::ToolSpec> callable_tools(const ChatTurn& turn);

// The prompt of a turn: template and tokenizer. Throws Error{invalid_argument} with the template's own
// message when it refuses the chat.
std::vector<int> render_turn(const ChatTurn& turn, const ServedModel& model);
// The generations that make it. Throws RequestError context_length_exceeded too.
GenerationPlan plan_turn(const ChatTurn& turn, const ServedModel& model);
// Whether the answer to a prompt of render_turn begins inside of reasoning.
bool begins_in_reasoning(const ChatTurn& turn, const ServedModel& model, const std::vector<int>& prompt);

}  // namespace godwit::serve
