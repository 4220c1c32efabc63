#include "serve/chat_turn.h"

#include <algorithm>
#include <span>

#include "text/turn/normalise_chat.h"

namespace godwit::serve {
namespace {

constexpr std::size_t kTailTokens = 64;  // enough for a generation prompt

bool is_allowed(const ToolChoice& choice, const std::string& name) {
  return choice.names.empty() || std::ranges::find(choice.names, name) != choice.names.end();
}

// What the template gets: the keys that the request had.
Json tools_json(const ChatTurn& turn) {
  Json out = Json::array();
  for (const text::ToolSpec& tool : callable_tools(turn)) {
    Json function{{"name", tool.name}};
    if (!tool.description.empty()) function["description"] = tool.description;
    function["parameters"] = tool.parameters;
    out.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return out.empty() ? Json(nullptr) : out;
}

Json variables_of(const ChatTurn& turn, const text::TurnFormat& format) {
  Json variables = Json::object();
  if (turn.reasoning.is_on) {
    variables["enable_thinking"] = *turn.reasoning.is_on;
    if (!format.thinking_variable.empty()) variables[format.thinking_variable] = *turn.reasoning.is_on;
  }
  if (!turn.reasoning.effort.empty()) variables["reasoning_effort"] = turn.reasoning.effort;
  variables.update(turn.template_variables);  // the request's own words win
  return variables;
}

// What the answer begins with when it continues `message`; the prompt may have opened the reasoning already.
std::string beginning(const Json& message, const text::TurnFormat& format, std::string_view prompt) {
  const std::string content = message.value("content", "");
  const std::string reasoning = message.value("reasoning_content", "");
  if (format.reasoning_open.empty()) return content;
  const bool is_open = text::opens_reasoning(format, prompt);
  if (!is_open && reasoning.empty()) return content;
  std::string text = (is_open ? "" : format.reasoning_open + "\n") + reasoning;
  if (!content.empty()) text += "\n" + format.reasoning_close + "\n\n" + content;
  return text;
}

// Bytes of all texts in it.
std::size_t size_of(const Json& value) {
  if (value.is_string()) return value.get_ref<const std::string&>().size();
  std::size_t sum = 0;
  if (value.is_structured())
    for (const Json& part : value) sum += size_of(part);
  return sum;
}

}  // namespace

std::vector<text::ToolSpec> callable_tools(const ChatTurn& turn) {
  std::vector<text::ToolSpec> tools;
  if (turn.tool_choice.kind == ToolChoice::Kind::none) return tools;
  for (const text::ToolSpec& tool : turn.tools)
    if (is_allowed(turn.tool_choice, tool.name)) tools.push_back(tool);
  return tools;
}

std::vector<int> render_turn(const ChatTurn& turn, const ServedModel& model) {
  const text::ChatTemplate& chat_template = model.need_chat_template();
  static_cast<void>(model.need_tokenizer());
  check_text_size(model, "messages", size_of(turn.messages));
  text::ChatInput input{.messages = turn.messages,
                        .tools = tools_json(turn),
                        .documents = turn.documents,
                        .add_generation_prompt = turn.adds_generation_prompt,
                        .extra = variables_of(turn, model.turn_format)};
  text::ChatEncoder::Continuation continuation;
  if (turn.continues_final_message) {
    input.messages.erase(input.messages.size() - 1);
    input.add_generation_prompt = true;
    continuation = [&](std::string_view prompt) {
      return beginning(turn.messages.back(), model.turn_format, prompt);
    };
  }
  input = text::normalise_chat(std::move(input), model.template_traits, model.turn_format);
  return model.chat_encoder->encode(chat_template, std::move(input), continuation);
}

GenerationPlan plan_turn(const ChatTurn& turn, const ServedModel& model) {
  GenerationPlan plan{.prompts = {render_turn(turn, model)}, .choices = turn.choices, .common = turn.common};
  check_context(model, "messages", plan.prompts[0].size(), plan.common.max_tokens);
  return plan;
}

bool begins_in_reasoning(const ChatTurn& turn, const ServedModel& model, const std::vector<int>& prompt) {
  const text::TurnFormat& format = model.turn_format;
  if (format.reasoning_open.empty()) return false;
  if (turn.continues_final_message) {
    const Json& last = turn.messages.back();
    if (!last.value("content", "").empty()) return false;
    if (!last.value("reasoning_content", "").empty()) return true;
  }
  const std::size_t begin = prompt.size() - std::min(prompt.size(), kTailTokens);
  const std::string tail =
      model.need_tokenizer().decode(std::span(prompt).subspan(begin), /*skip_special_tokens=*/false);
  return text::opens_reasoning(format, tail);
}

}  // namespace godwit::serve
