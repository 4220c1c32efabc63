// Formats of turns told by real templates, and calls that survive parse, rendering by the template and parse.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "expected.h"
#include "support/byte_tokenizer.h"
#include "text/turn/normalise_chat.h"
#include "text/turn/turn_parser.h"

namespace godwit::text {
namespace {

ChatTemplate template_of(const std::string& name) {
  return ChatTemplate(expected()["templates"].at(name).get<std::string>(), expected()["special"], name,
                      [] { return expected()["clock"].get<std::int64_t>(); });
}

TurnFormat format_of(const std::string& name) {
  static const Tokenizer tokenizer = testing::byte_tokenizer();
  return turn_format_of(expected()["templates"].at(name).get<std::string>(), tokenizer);
}

// The tool format and the marker that opens reasoning, for each template whose format is read here.
const std::map<std::string, std::pair<std::string, std::string>> kFormats = {
    {"Qwen-Qwen3-0.6B", {"hermes", "<think>"}},
    {"Qwen-Qwen2.5-7B-Instruct", {"hermes", ""}},
    {"Qwen-QwQ-32B", {"hermes", "<think>"}},
    {"NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use", {"hermes", ""}},
    {"NousResearch-Hermes-3-Llama-3.1-8B-tool_use", {"hermes", ""}},
    {"MiMo-VL", {"hermes", ""}},
    {"ibm-granite-granite-4.0", {"hermes", ""}},
    {"Bielik-11B-v3.0-Instruct", {"hermes", "<think>"}},
    {"Qwen3-Coder", {"qwen_xml", ""}},
    {"Qwen3.5-4B", {"qwen_xml", "<think>"}},
    {"NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", {"qwen_xml", "<think>"}},
    {"StepFun3.5-Flash", {"qwen_xml", "<think>"}},
    {"ByteDance-Seed-OSS", {"seed", "<seed:think>"}},
    {"google-gemma-4-31B-it", {"gemma4", "<|channel>thought"}},
    {"google-gemma-4-31B-it-interleaved", {"gemma4", "<|channel>thought"}},
    {"meta-llama-Llama-3.1-8B-Instruct", {"llama", ""}},
    {"meta-llama-Llama-3.2-3B-Instruct", {"llama", ""}},
    {"meta-llama-Llama-3.3-70B-Instruct", {"llama", ""}},
    {"LFM2-8B-A1B", {"lfm2", ""}},
    {"LFM2.5-8B-A1B", {"lfm2", "<think>"}},
    {"mistralai-Mistral-Nemo-Instruct-2407", {"mistral", ""}},
    {"Mistral-Small-3.2-24B-Instruct-2506", {"mistral", ""}},
    {"unsloth-mistral-Devstral-Small-2507", {"mistral", ""}},
    {"mistralai-Ministral-3-14B-Reasoning-2512", {"mistral", "[THINK]"}},
    {"GLM-4.6", {"glm", "<think>"}},
    {"GLM-4.7-Flash", {"glm", "<think>"}},
    {"openbmb-MiniCPM5-1B", {"minicpm5", "<think>"}},
    {"moonshotai-Kimi-K2", {"kimi", ""}},
    {"Kimi-K2-Instruct", {"kimi", ""}},
    {"Kimi-K2-Thinking", {"kimi", "<think>"}},
    {"MiniMax-M2", {"minimax", "<think>"}},
    {"deepseek-ai-DeepSeek-V3.1", {"deepseek", "<think>"}},
    {"llama-cpp-deepseek-r1", {"deepseek", "<think>"}},
    {"deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", {"deepseek", "<think>"}},
    {"deepseek-ai-DeepSeek-V3.2", {"deepseek_dsml", "<think>"}},
    {"NVIDIA-Nemotron-Nano-v2", {"nemotron", "<think>"}},
    {"ibm-granite-granite-3.3-2B-Instruct", {"granite", "<think>"}},
    {"openai-gpt-oss-120b", {"harmony", ""}},
    {"google-gemma-2-2b-it", {"generic", ""}},
    {"microsoft-Phi-3.5-mini-instruct", {"generic", ""}},
};

TEST(TemplateTurns, FormatsAreToldByTheTemplatesText) {
  for (const auto& [name, format] : kFormats) {
    EXPECT_EQ(name_of(format_of(name).tools), format.first) << name;
    EXPECT_EQ(format_of(name).reasoning_open, format.second) << name;
  }
}

TEST(TemplateTurns, ThePromptsOwnEndOpensTheReasoningOrNot) {
  const auto opens = [](const std::string& name, Json extra) {
    const ChatInput input{.messages = Json::array({{{"role", "user"}, {"content", "Hi"}}}), .extra = std::move(extra)};
    return opens_reasoning(format_of(name), template_of(name).render(input));
  };
  EXPECT_TRUE(opens("Qwen3.5-4B", Json::object()));
  EXPECT_FALSE(opens("Qwen3.5-4B", {{format_of("Qwen3.5-4B").thinking_variable, false}}));
  EXPECT_FALSE(opens("Qwen-Qwen3-0.6B", Json::object()));
  EXPECT_FALSE(opens("Qwen-Qwen3-0.6B", {{"enable_thinking", false}}));
  EXPECT_TRUE(opens("MiniMax-M2", Json::object()));
  EXPECT_TRUE(opens("llama-cpp-deepseek-r1", Json::object()));
  EXPECT_TRUE(opens("deepseek-ai-DeepSeek-V3.1", {{"thinking", true}}));
  EXPECT_FALSE(opens("deepseek-ai-DeepSeek-V3.1", Json::object()));
  EXPECT_FALSE(opens("google-gemma-4-31B-it", Json::object()));
}

const Json kTool = Json::parse(R"([{"type": "function", "function": {"name": "get_weather", "description": "Weather",
  "parameters": {"type": "object", "properties": {"place": {"type": "string", "description": "where"},
  "days": {"type": "integer", "description": "how many"}, "wind": {"type": "boolean", "description": "too"},
  "details": {"type": "object", "description": "what", "properties": {"depth": {"type": "integer"}}},
  "hours": {"type": "array", "description": "when", "items": {"type": "number"}}}, "required": ["place"]}}}])");

std::vector<ToolSpec> specs() {
  const Json& function = kTool[0]["function"];
  return {{.name = "get_weather", .parameters = function["parameters"]}};
}

Json assistant(const std::vector<std::pair<std::string, Json>>& calls) {
  Json out{{"role", "assistant"}, {"content", ""}, {"tool_calls", Json::array()}};
  for (const auto& [id, arguments] : calls)
    out["tool_calls"].push_back(
        {{"id", id}, {"type", "function"}, {"function", {{"name", "get_weather"}, {"arguments", arguments}}}});
  return out;
}

std::string rendered(const ChatTemplate& chat_template, const TurnFormat& format, const TemplateTraits& traits, Json messages,
                     bool prompts) {
  ChatInput input{.messages = std::move(messages), .tools = kTool, .add_generation_prompt = prompts};
  return chat_template.render(normalise_chat(std::move(input), traits, format));
}

// What the template writes for the assistant's turn.
std::string turn_text(const ChatTemplate& chat_template, const TurnFormat& format, const TemplateTraits& traits,
                      const Json& turn) {
  const Json user{{"role", "user"}, {"content", "Weather?"}};
  const std::string prompt = rendered(chat_template, format, traits, {user}, true);
  const std::string whole = rendered(chat_template, format, traits, {user, turn}, false);
  std::size_t same = 0;
  while (same < prompt.size() && same < whole.size() && prompt[same] == whole[same]) ++same;
  const std::size_t mark = whole.find_last_of("<>[]", same - 1);  // another marker may begin in the same way
  if (mark != std::string::npos && (whole[mark] == '<' || whole[mark] == '[')) same = mark;
  if (format.tools == ToolFormat::harmony) same = whole.rfind("<|start|>assistant") + 18;
  return whole.substr(same);
}

std::vector<std::pair<std::string, Json>> parsed(const TurnFormat& format, const std::string& text) {
  TurnParser parser(format, specs(), {});
  std::vector<std::pair<std::string, Json>> calls;
  std::vector<std::string> arguments;
  auto pieces = parser.add(-1, text);
  for (TurnPiece& piece : parser.finish()) pieces.push_back(std::move(piece));
  for (const TurnPiece& piece : pieces) {
    if (piece.kind == TurnPiece::Kind::call) {
      EXPECT_EQ(piece.name, "get_weather");
      calls.emplace_back(piece.id, Json());
      arguments.emplace_back();
    } else if (piece.kind == TurnPiece::Kind::arguments) {
      arguments.back() += piece.text;
    }
  }
  for (std::size_t i = 0; i < calls.size(); ++i) calls[i].second = Json::parse(arguments[i]);
  return calls;
}

const std::vector<Json> kArguments = {
    Json::parse(R"({"place": "Oslo"})"),
    Json::parse(R"({"days": 3, "details": {"depth": 2}, "hours": [1, 2.5], "place": "Århus & <b>", "wind": true})"),
    Json::parse(R"({"place": "two\nlines"})"),
};

// These append to lists, which the sandbox that templates run in forbids: they render no turn of an assistant.
const std::set<std::string> kForbidden = {"Kimi-K2-Instruct", "Kimi-K2-Thinking"};

TEST(TemplateTurns, CallsSurviveRenderingByTheTemplate) {
  int turns = 0;
  for (const auto& [name, unused] : kFormats) {
    if (kForbidden.contains(name)) continue;
    const TurnFormat format = format_of(name);
    const ChatTemplate chat_template = template_of(name);
    const TemplateTraits traits = template_traits(chat_template);
    for (const Json& arguments : kArguments) {
      std::vector<std::pair<std::string, Json>> calls = {{"call00001", arguments}};
      if (format.tools == ToolFormat::kimi) calls[0].first = "functions.get_weather:0";
      if (traits.many_calls == Support::shown) calls.emplace_back("call00002", kArguments[0]);
      if (format.tools == ToolFormat::kimi && calls.size() > 1) calls[1].first = "functions.get_weather:1";
      std::string text;
      try {
        text = turn_text(chat_template, format, traits, assistant(calls));
      } catch (const Error& e) {
        ADD_FAILURE() << name << ": " << e.what();
        continue;
      }
      auto found = parsed(format, text);
      ASSERT_EQ(found.size(), calls.size()) << name << "\n" << text;
      for (std::size_t i = 0; i < calls.size(); ++i)
        EXPECT_TRUE(nlohmann::json(found[i].second) == nlohmann::json(calls[i].second)) << name << "\n" << text;
      if (format.tools != ToolFormat::kimi)
        for (std::size_t i = 0; i < calls.size(); ++i) found[i].first = calls[i].first;
      EXPECT_EQ(turn_text(chat_template, format, traits, assistant(found)), text) << name;
      ++turns;
    }
  }
  std::printf("%d turns of %zu templates\n", turns, kFormats.size());
}

bool renders_without_tools(const ChatTemplate& chat_template) {
  try {
    chat_template.render({.messages = Json::array({{{"role", "user"}, {"content", "Hi"}}})});
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Whatever a template cannot show is shown otherwise, or refused aloud.
TEST(TemplateTurns, NoTextOfAChatIsLost) {
  const Json chat = Json::parse(R"([{"role": "system", "content": "WORD1"}, {"role": "user", "content": "WORD2"},
    {"role": "assistant", "content": "WORD3"}, {"role": "system", "content": "WORD4"}, {"role": "user", "content": "WORD5"}])");
  int shown = 0, refused = 0;
  for (const auto& [name, source] : expected()["templates"].items()) {
    const ChatTemplate chat_template = template_of(name);
    if (!renders_without_tools(chat_template)) continue;
    const TemplateTraits traits = template_traits(chat_template);
    for (const bool merges : {false, true}) {
      std::string text;
      try {
        text = chat_template.render(normalise_chat({.messages = chat}, traits, format_of(name), {.merges_refused = merges}));
      } catch (const Error&) {
        EXPECT_FALSE(merges) << name;
        ++refused;
        continue;
      }
      for (int word = 1; word <= 5; ++word)
        EXPECT_NE(text.find("WORD" + std::to_string(word)), std::string::npos) << name << " " << word << "\n" << text;
      ++shown;
    }
  }
  std::printf("%d shown, %d refused\n", shown, refused);
}

}  // namespace
}  // namespace godwit::text
