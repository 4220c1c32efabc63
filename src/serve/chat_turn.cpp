#include "serve/chat_turn.h"

namespace godwit::serve {
namespace {

Json tools_json(const std::vector<text::ToolSpec>& tools) {
  if (tools.empty()) return nullptr;
  Json out = Json::array();
  for (const text::ToolSpec& tool : tools) {
    Json function{{"name", tool.name}, {"description", tool.description}, {"parameters", tool.parameters}};
    out.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return out;
}

Json variables_of(const ChatTurn& turn) {
  Json variables = Json::object();
  if (turn.reasoning.is_on) variables["enable_thinking"] = *turn.reasoning.is_on;
  if (!turn.reasoning.effort.empty()) variables["reasoning_effort"] = turn.reasoning.effort;
  variables.update(turn.template_variables);  // the request's own words win
  return variables;
}

}  // namespace

std::vector<int> render_turn(const ChatTurn& turn, const ServedModel& model) {
  const text::ChatTemplate& chat_template = model.need_chat_template();
  static_cast<void>(model.need_tokenizer());
  const bool shows_tools = turn.tool_choice.kind != ToolChoice::Kind::none;
  return model.chat_encoder->encode(chat_template, {.messages = turn.messages,
                                                    .tools = shows_tools ? tools_json(turn.tools) : Json(nullptr),
                                                    .documents = nullptr,
                                                    .add_generation_prompt = turn.adds_generation_prompt,
                                                    .extra = variables_of(turn)});
}

GenerationPlan plan_turn(const ChatTurn& turn, const ServedModel& model) {
  GenerationPlan plan{.prompts = {render_turn(turn, model)}, .choices = turn.choices, .common = turn.common};
  check_context(model, "messages", plan.prompts[0].size(), plan.common.max_tokens);
  return plan;
}

}  // namespace godwit::serve
