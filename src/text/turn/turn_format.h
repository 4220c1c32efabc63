// How a model writes what is not plain content in its turn: reasoning and calls of tools. docs/tools.md.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "text/tokenizer.h"

namespace godwit::text {

// A function that the model may call. `parameters` is a JSON schema of an object.
struct ToolSpec {
  std::string name;
  std::string description = {};
  Json parameters = Json::object();
  bool is_strict = false;  // arguments are to be held to the schema even where the model may choose not to call
};

// Each with its row in tool_formats.cpp.
enum class ToolFormat {
  none,
  hermes,         // <tool_call>{"name": …, "arguments": {…}}</tool_call>
  qwen_xml,       // <tool_call><function=f><parameter=k>v</parameter></function></tool_call>
  seed,           // the same in <seed:tool_call>
  gemma4,         // <|tool_call>call:f{k:<|"|>v<|"|>}<tool_call|>
  function_gemma, // <start_function_call>call:f{k:<escape>v<escape>}<end_function_call>
  llama,          // {"name": …, "parameters": {…}} or [f(k="v")], the whole answer
  lfm2,           // <|tool_call_start|>[f(k="v")]<|tool_call_end|>
  mistral,        // [TOOL_CALLS]f[ARGS]{…} or [TOOL_CALLS][{"name": …, "arguments": {…}}]
  glm,            // <tool_call>f<arg_key>k</arg_key><arg_value>v</arg_value></tool_call>
  minicpm5,       // <function name="f"><param name="k">v</param></function>
  kimi,           // <|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{…}<|tool_call_end|>
  minimax,        // <minimax:tool_call><invoke name="f"><parameter name="k">v</parameter></invoke>…
  deepseek,       // <｜tool▁call▁begin｜>f<｜tool▁sep｜>{…}<｜tool▁call▁end｜>, in V3 with a type and a fence
  deepseek_dsml,  // <｜DSML｜invoke name="f"><｜DSML｜parameter name="k" string="true">v…
  longcat,        // <longcat_tool_call>{…}</longcat_tool_call>
  nemotron,       // <TOOLCALL>[{…}]</TOOLCALL>
  granite,        // <|tool_call|>[{…}]
  functionary,    // <function=f>{…}</function>
  harmony,        // <|channel|>commentary to=functions.f<|message|>{…}<|call|>
  generic,        // {"tool_call": {"name": …, "arguments": {…}}}: templates that know no tools
};

struct TurnFormat {
  ToolFormat tools = ToolFormat::none;
  std::string reasoning_open = {};  // "<think>"; empty: the model has no reasoning of its own
  std::string reasoning_close = {};
  bool has_older_calls = false;  // of two forms that a format has had: a list (Mistral), a type and a fence (DeepSeek)
  // The variable of the template that turns reasoning off when it is false; empty: none.
  std::string thinking_variable = {};
  // Tokens of the vocabulary that markers begin with, by id. They are told by their ids first.
  std::map<int, std::string> token_texts = {};
  // Of these the ones that decoding hides: for GenerationRequest::shown_special_tokens.
  std::vector<int> hidden_tokens = {};
  // Text that spells a marker for which the vocabulary has a token is content. Off: fine-tunes lose the tokens.
  bool is_strict = false;
};

// What the template's text says by the markers it writes, and where it says nothing the vocabulary.
TurnFormat turn_format_of(std::string_view template_source, const Tokenizer& tokenizer);
// The same with the tool format given by name ("hermes"; "none"). Error{invalid_argument} lists the names.
TurnFormat turn_format_of(std::string_view template_source, const Tokenizer& tokenizer, std::string_view tools);

std::string_view name_of(ToolFormat format);
std::vector<std::string_view> tool_format_names();

// Whether a prompt ends inside the reasoning that it opened itself: for TurnStart::is_in_reasoning.
bool opens_reasoning(const TurnFormat& format, std::string_view prompt);

}  // namespace godwit::text
