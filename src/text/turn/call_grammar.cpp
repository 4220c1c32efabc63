#include "text/turn/call_grammar.h"

#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "text/grammar.h"
#include "text/turn/argument_grammar.h"
#include "text/turn/grammar_text.h"
#include "text/turn/strict_arguments.h"

namespace godwit::text {
namespace {

// The calls of a turn: open call (between call)* close, and where `repeats` the whole of it again.
struct Layout {
  std::string open = {};  // begins with the text that a model opens calls with
  std::string behind_open = {}, between = {}, close = {};  // Lark
  bool is_repeated = false;  // each call has opener and closer of its own
  std::string between_blocks = {};
  std::function<std::string(GrammarText&, const ToolSpec&)> call;
};

std::string json_arguments(GrammarText& grammar, const ToolSpec& tool) {
  return grammar.new_rule("arguments", grammar.json(argument_schema(tool)));
}

std::string json_call(GrammarText& grammar, const ToolSpec& tool, std::string_view key) {
  return fmt::format("{} {} \"}}\"", lark_string(fmt::format("{{\"name\": {}, \"{}\": ", lark_string(tool.name), key)),
                     json_arguments(grammar, tool));
}

Layout tagged_json(GrammarText& grammar, std::string_view open, std::string_view close) {
  return {.open = std::string(open), .behind_open = "\"\\n\"?", .close = "\"\\n\"? " + grammar.marker(close),
          .is_repeated = true, .between_blocks = "\"\\n\"?", .call = [](GrammarText& to, const ToolSpec& tool) {
            return json_call(to, tool, "arguments");
          }};
}

Layout json_list(GrammarText& grammar, std::string_view open, std::string_view close) {
  const std::string end = grammar.marker(close);
  return {.open = std::string(open), .behind_open = "\"[\"", .between = "\", \"",
          .close = "\"]\"" + (end.empty() ? "" : " " + end), .call = [](GrammarText& to, const ToolSpec& tool) {
            return json_call(to, tool, "arguments");
          }};
}

Layout function_tags(GrammarText& grammar, std::string_view open, std::string_view close, std::string line) {
  return {.open = std::string(open), .behind_open = "\"\\n\"?", .close = "\"\\n\"? " + grammar.marker(close),
          .is_repeated = true, .between_blocks = "\"\\n\"?",
          .call = [line = std::move(line)](GrammarText& to, const ToolSpec& tool) {
            const TaggedArguments tags{"<parameter=", ">" + line, line + "</parameter>\n"};
            return lark_string("<function=" + tool.name + ">\n") + " " + tagged_arguments(to, tool, tags) + " \"</function>\"";
          }};
}

Layout invokes(GrammarText& grammar, std::string space, std::string_view open, std::string_view close) {
  return {.open = std::string(open), .behind_open = "\"\\n\"?", .close = grammar.marker(close),
          .call = [space = std::move(space)](GrammarText& to, const ToolSpec& tool) {
            const TaggedArguments tags{.open = "<" + space + "parameter name=\"", .key_end = "\">",
                                       .close = "</" + space + "parameter>\n", .names_strings = !space.empty()};
            return lark_string("<" + space + "invoke name=\"" + tool.name + "\">\n") + " " +
                   tagged_arguments(to, tool, tags) + " " + lark_string("</" + space + "invoke>\n");
          }};
}

Layout gemma(GrammarText& grammar, std::string_view open, std::string_view close, std::string quote) {
  return {.open = std::string(open), .close = grammar.marker(close), .is_repeated = true,
          .call = [quote = std::move(quote)](GrammarText& to, const ToolSpec& tool) {
            return lark_string("call:" + tool.name) + " " + literal_arguments(to, tool, {.quote = quote});
          }};
}

std::string named_json(GrammarText& grammar, const ToolSpec& tool, const std::string& between) {
  return lark_string(tool.name) + " " + between + " " + json_arguments(grammar, tool);
}

Layout kimi(GrammarText& grammar) {
  return {.open = "<|tool_calls_section_begin|>", .close = grammar.marker("<|tool_calls_section_end|>"),
          .call = [](GrammarText& to, const ToolSpec& tool) {
            return fmt::format("{} {} /[0-9]+/ {} {} {}", to.marker("<|tool_call_begin|>"),
                               lark_string("functions." + tool.name + ":"), to.marker("<|tool_call_argument_begin|>"),
                               json_arguments(to, tool), to.marker("<|tool_call_end|>"));
          }};
}

Layout deepseek(GrammarText& grammar, bool is_older) {
  return {.open = "<｜tool▁calls▁begin｜>", .between = is_older ? "\"\\n\"?" : "",
          .close = grammar.marker("<｜tool▁calls▁end｜>"), .call = [is_older](GrammarText& to, const ToolSpec& tool) {
            const std::string sep = to.marker("<｜tool▁sep｜>");
            const std::string body = is_older ? "\"function\" " + sep + " " + named_json(to, tool, "\"\\n```json\\n\"") +
                                                    " \"\\n```\""
                                              : named_json(to, tool, sep);
            return to.marker("<｜tool▁call▁begin｜>") + " " + body + " " + to.marker("<｜tool▁call▁end｜>");
          }};
}

Layout layout_of(GrammarText& grammar, const TurnFormat& format) {
  switch (format.tools) {
    case ToolFormat::hermes: return tagged_json(grammar, "<tool_call>", "</tool_call>");
    case ToolFormat::longcat: return tagged_json(grammar, "<longcat_tool_call>", "</longcat_tool_call>");
    case ToolFormat::qwen_xml: return function_tags(grammar, "<tool_call>", "</tool_call>", "\n");
    case ToolFormat::seed: return function_tags(grammar, "<seed:tool_call>", "</seed:tool_call>", "");
    case ToolFormat::gemma4: return gemma(grammar, "<|tool_call>", "<tool_call|>", "<|\"|>");
    case ToolFormat::function_gemma:
      return gemma(grammar, "<start_function_call>", "<end_function_call>", "<escape>");
    case ToolFormat::minimax: return invokes(grammar, "", "<minimax:tool_call>", "</minimax:tool_call>");
    case ToolFormat::deepseek_dsml:
      return invokes(grammar, "｜DSML｜", "<｜DSML｜function_calls>", "</｜DSML｜function_calls>");
    case ToolFormat::kimi: return kimi(grammar);
    case ToolFormat::deepseek: return deepseek(grammar, format.has_older_calls);
    case ToolFormat::nemotron: return json_list(grammar, "<TOOLCALL>", "</TOOLCALL>");
    case ToolFormat::granite: return json_list(grammar, "<|tool_call|>", "");
    case ToolFormat::lfm2:
      return {.open = "<|tool_call_start|>", .behind_open = "\"[\"", .between = "\", \"",
              .close = "\"]\" " + grammar.marker("<|tool_call_end|>"), .call = [](GrammarText& to, const ToolSpec& tool) {
                return lark_string(tool.name) + " " + literal_arguments(to, tool, {.is_python = true});
              }};
    case ToolFormat::mistral:
      if (format.has_older_calls) return json_list(grammar, "[TOOL_CALLS]", "");
      return {.open = "[TOOL_CALLS]", .is_repeated = true, .call = [](GrammarText& to, const ToolSpec& tool) {
                return named_json(to, tool, to.marker("[ARGS]"));
              }};
    case ToolFormat::glm:
      return {.open = "<tool_call>", .close = "\"</tool_call>\"", .is_repeated = true, .between_blocks = "\"\\n\"?",
              .call = [](GrammarText& to, const ToolSpec& tool) {
                const TaggedArguments tags{"<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>\n"};
                return lark_string(tool.name + "\n") + " " + tagged_arguments(to, tool, tags);
              }};
    case ToolFormat::functionary:
      return {.open = "<function=", .close = "\"</function>\"", .is_repeated = true,
              .call = [](GrammarText& to, const ToolSpec& tool) { return named_json(to, tool, "\">\""); }};
    case ToolFormat::llama:
      return {.between = "\"; \"", .call = [](GrammarText& to, const ToolSpec& tool) {
                return json_call(to, tool, "parameters");
              }};
    default:
      fail(ErrorCode::unsupported, "tools", "calls in the format {} cannot be forced", name_of(format.tools));
  }
}

// What is allowed instead of calls, behind which nothing of a call follows.
std::string text_without(GrammarText& grammar, const std::string& opener) {
  const std::string name = "TAIL";
  grammar.rule(name, fmt::format("/(?s:.*)/ & ~/(?s:.*){}(?s:.*)/", lark_regex_escaped(opener)));
  return name;
}

std::string with_layout(GrammarText& grammar, const Layout& layout, std::span<const ToolSpec> tools, CallWish wish,
                        bool is_parallel) {
  std::vector<std::string> calls;
  for (const ToolSpec& tool : tools) calls.push_back(layout.call(grammar, tool));
  grammar.rule("call", alternatives(calls));
  const bool has_list = is_parallel && !layout.is_repeated;
  grammar.rule("calls", fmt::format("{} call {} {}", layout.behind_open,
                                    has_list ? fmt::format("( {} call )*", layout.between) : "", layout.close));
  const std::string open = grammar.marker(layout.open);
  const bool repeats = is_parallel && layout.is_repeated;
  if (wish == CallWish::forced)
    return fmt::format("{} calls{}", open, repeats ? fmt::format(" ( {} {} calls )*", layout.between_blocks, open) : "");
  if (layout.open.empty()) {  // the whole answer is a call, or none of it
    grammar.rule("OTHER", "/(?s:.*)/ & ~/[ \\n]*\\{[ \\n]*\"name\"(?s:.*)/");
    return "calls | OTHER";
  }
  const std::string more = is_parallel ? "*" : "?";
  if (grammar.is_special(layout.open)) {
    grammar.rule("TEXT", "/(?s:.*)/");
    return fmt::format("TEXT ( {} calls TEXT ){}", open, more);
  }
  const std::string tail = text_without(grammar, layout.open);
  return fmt::format("( {} calls ){} {}", grammar.text_to(layout.open), more, tail);
}

std::string generic(GrammarText& grammar, std::span<const ToolSpec> tools, CallWish wish, bool is_parallel) {
  std::vector<std::string> calls;
  for (const ToolSpec& tool : tools) calls.push_back(json_call(grammar, tool, "arguments"));
  grammar.rule("call", alternatives(calls));
  std::string start = "\"{\\\"tool_call\\\": \" call \"}\"";
  if (is_parallel) start += " | \"{\\\"tool_calls\\\": [\" call ( \", \" call )* \"]}\"";
  if (wish == CallWish::forced) return start;
  return start + " | \"{\\\"response\\\": \" " + grammar.new_rule("response", "%json {\"type\": \"string\"}") + " \"}\"";
}

std::string minicpm5(GrammarText& grammar, std::span<const ToolSpec> tools, CallWish wish, bool is_parallel) {
  const Layout layout{.open = "<function name=\"", .close = "\"</function>\"", .is_repeated = true,
                      .between_blocks = "\"\\n\"?", .call = [](GrammarText& to, const ToolSpec& tool) {
                        const TaggedArguments tags{"<param name=\"", "\">", "</param>", true};
                        return lark_string(tool.name + "\">") + " " + tagged_arguments(to, tool, tags);
                      }};
  return with_layout(grammar, layout, tools, wish, is_parallel);
}

// One call ends a message, and with it the turn.
std::string harmony(GrammarText& grammar, std::span<const ToolSpec> tools, CallWish wish, const JsonInstead& instead) {
  std::vector<std::string> calls;
  for (const ToolSpec& tool : tools)
    calls.push_back(fmt::format("{} {} {} {}", lark_string("commentary to=functions." + tool.name + " "),
                                grammar.marker("<|constrain|>") + " \"json\"", grammar.marker("<|message|>"),
                                json_arguments(grammar, tool)));
  const std::string channel = grammar.marker("<|channel|>"), message = grammar.marker("<|message|>");
  const std::string next = grammar.text_to("<|end|>") + " " + grammar.marker("<|start|>") + " \"assistant\"";
  if (wish == CallWish::free) {
    grammar.rule("TEXT", "/(?s:.*)/");
    calls.push_back(fmt::format("\"final\" {} TEXT", message));
  }
  if (instead) calls.push_back(fmt::format("\"final\" {} {}", message, grammar.new_rule("instead", grammar.json(*instead))));
  return fmt::format("( {0} (\"analysis\" | \"commentary\") {1} {2} )* {0} {3}", channel, message, next,
                     alternatives(calls));
}

void need_enforceable_strict(const ToolSpec& tool) {
  try {
    need_enforceable(argument_schema(tool));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument) throw;
    refuse_strict(tool, error.what());
  }
}

}  // namespace

// The lexer takes the longest terminal, so `{"` would always begin a call there.
bool may_have_json_instead(const TurnFormat& format) {
  return format.tools != ToolFormat::generic && format.tools != ToolFormat::llama;
}

std::string call_grammar(const TurnFormat& format, std::span<const ToolSpec> tools, CallWish wish, bool is_parallel,
                         const JsonInstead& instead) {
  GODWIT_CHECK(!tools.empty(), "no tool to call");
  GODWIT_CHECK(!instead || wish == CallWish::forced, "free text takes the place of calls already");
  if (instead && !may_have_json_instead(format))
    fail(ErrorCode::unsupported, "tools", "a form of the output beside calls in the format {}", name_of(format.tools));
  for (const ToolSpec& tool : tools)
    if (tool.is_strict) need_enforceable_strict(tool);
  std::vector<ToolSpec> held(tools.begin(), tools.end());
  if (wish == CallWish::free)
    for (ToolSpec& tool : held)
      if (!tool.is_strict) tool.parameters = Json{{"type", "object"}, {"additionalProperties", true}};
  GrammarText grammar(format);
  std::string start;
  if (format.tools == ToolFormat::generic)
    start = generic(grammar, held, wish, is_parallel);
  else if (format.tools == ToolFormat::minicpm5)
    start = minicpm5(grammar, held, wish, is_parallel);
  else if (format.tools == ToolFormat::harmony)
    start = harmony(grammar, held, wish, instead);
  else
    start = with_layout(grammar, layout_of(grammar, format), held, wish, is_parallel);
  if (instead && format.tools != ToolFormat::harmony)
    start = fmt::format("( {} ) | {}", start, grammar.new_rule("instead", grammar.json(*instead)));
  grammar.rule("start", start);
  return grammar.str();
}

}  // namespace godwit::text
