#include "text/turn/tool_formats.h"

#include <algorithm>
#include <array>

#include "text/turn/json_calls.h"
#include "text/turn/named_calls.h"
#include "text/turn/xml_calls.h"

namespace godwit::text {
namespace {

using Texts = std::vector<std::string_view>;
using Openers = std::vector<CallOpener>;

// Markers of one format with the tokens of one vocabulary.
class Of {
 public:
  explicit Of(const TurnFormat& format) : format_(format) {}
  Marker operator()(std::string_view text) const { return marker_of(format_, text); }

 private:
  const TurnFormat& format_;
};

CallReaderMaker tagged_json(const Of& of, std::string_view open, std::string_view close) {
  return json_calls({.open = of(open), .close = of(close)});
}

CallReaderMaker bare_json(bool is_generic) {
  return json_calls({.known_only = !is_generic, .is_generic = is_generic});
}

CallReaderMaker bare_python() {
  return named_calls({.name_prefix = "[", .bracket = '(', .literal = {.is_python = true}, .known_only = true});
}

CallReaderMaker qwen_xml(const Of& of, std::string_view open, std::string_view close, bool strips_newline) {
  return xml_calls({.section_open = of(open),
                    .section_close = of(close),
                    .call_open = of("<function="),
                    .name_end = ">",
                    .call_close = "</function>",
                    .key_open = "<parameter=",
                    .key_end = ">",
                    .value_close = "</parameter>",
                    .strips_newline = strips_newline});
}

// <x:invoke name="f"><x:parameter name="k">
CallReaderMaker invoke_xml(const Of& of, const std::string& space, std::string_view open, std::string_view close) {
  return xml_calls({.section_open = of(open),
                    .section_close = of(close),
                    .call_open = of("<" + space + "invoke name=\""),
                    .name_end = "\"",
                    .call_close = "</" + space + "invoke>",
                    .key_open = "<" + space + "parameter name=\"",
                    .key_end = "\"",
                    .value_open = ">",
                    .value_close = "</" + space + "parameter>"});
}

Openers hermes(const Of& of) {
  const auto json = tagged_json(of, "<tool_call>", "</tool_call>");
  return {{of("<tool_call>"), false, {json, qwen_xml(of, "<tool_call>", "</tool_call>", true)}}};
}

Openers qwen_xml_openers(const Of& of) {
  const auto xml = qwen_xml(of, "<tool_call>", "</tool_call>", true);
  return {{of("<tool_call>"), false, {xml, tagged_json(of, "<tool_call>", "</tool_call>")}},
          {of("<function="), false, {xml}}};
}

Openers seed(const Of& of) {
  const auto xml = qwen_xml(of, "<seed:tool_call>", "</seed:tool_call>", false);
  return {{of("<seed:tool_call>"), false, {xml}}, {of("<function="), false, {xml}}};
}

Openers gemma(const Of& of, std::string_view open, std::string_view close, std::string_view quote) {
  return {{of(open),
           false,
           {named_calls({.call_open = of(open),
                         .call_close = of(close),
                         .name_prefix = "call:",
                         .literal = {.verbatim_quotes = {of(quote)}, .ends = {of(close)}}})}}};
}

Openers gemma4(const Of& of) { return gemma(of, "<|tool_call>", "<tool_call|>", "<|\"|>"); }

Openers function_gemma(const Of& of) {
  return gemma(of, "<start_function_call>", "<end_function_call>", "<escape>");
}

// Only the whole answer can be a call, and only of a tool that exists: an answer may be JSON or a list as well.
Openers llama(const Of& of) {
  const auto tagged = json_calls({.open = of("<|python_tag|>"), .known_only = true});
  return {{of("{"), true, {bare_json(false)}},
          {of("["), true, {bare_json(false), bare_python()}},
          {of("```"), true, {bare_json(false)}},
          {of("<|python_tag|>"), false, {tagged}}};
}

Openers lfm2(const Of& of) {
  const Marker open = of("<|tool_call_start|>"), close = of("<|tool_call_end|>");
  return {{open,
           false,
           {named_calls({.section_open = open,
                         .section_close = close,
                         .name_prefix = "[",
                         .bracket = '(',
                         .literal = {.is_python = true, .ends = {close}}}),
            json_calls({.open = open, .close = close})}}};
}

Openers mistral(const Of& of) {
  const Marker open = of("[TOOL_CALLS]");
  return {{open,
           false,
           {json_calls({.open = open}),
            named_calls({.call_open = open,
                         .name_ends = {of("[ARGS]")},
                         .id_open = of("[CALL_ID]"),
                         .literal = {.ends = {open}}})}}};
}

Openers glm(const Of& of) {
  const auto pairs = xml_calls({.call_open = of("<tool_call>"),
                                .call_close = "</tool_call>",
                                .key_open = "<arg_key>",
                                .key_end = "</arg_key>",
                                .value_open = "<arg_value>",
                                .value_close = "</arg_value>"});
  return {{of("<tool_call>"), false, {pairs, tagged_json(of, "<tool_call>", "</tool_call>")}}};
}

Openers minicpm5(const Of& of) {
  return {{of("<function name=\""),
           false,
           {xml_calls({.call_open = of("<function name=\""),
                       .name_end = "\"",
                       .call_close = "</function>",
                       .key_open = "<param name=\"",
                       .key_end = "\"",
                       .value_open = ">",
                       .value_close = "</param>",
                       .has_cdata = true})}}};
}

Openers kimi(const Of& of) {
  const Marker section = of("<|tool_calls_section_begin|>"), call = of("<|tool_call_begin|>");
  const auto calls = named_calls({.section_open = section,
                                  .section_close = of("<|tool_calls_section_end|>"),
                                  .call_open = call,
                                  .call_close = of("<|tool_call_end|>"),
                                  .name_ends = {of("<|tool_call_argument_begin|>")},
                                  .literal = {.ends = {of("<|tool_call_end|>"), of("<|tool_calls_section_end|>")}},
                                  .has_numbered_names = true});
  return {{section, false, {calls}}, {call, false, {calls}}};
}

Openers minimax(const Of& of) {
  const auto xml = invoke_xml(of, "", "<minimax:tool_call>", "</minimax:tool_call>");
  return {{of("<minimax:tool_call>"), false, {xml}}, {of("<invoke name=\""), false, {xml}}};
}

Openers deepseek(const Of& of) {
  const Marker section = of("<｜tool▁calls▁begin｜>"), call = of("<｜tool▁call▁begin｜>");
  const auto calls = named_calls({.section_open = section,
                                  .section_close = of("<｜tool▁calls▁end｜>"),
                                  .call_open = call,
                                  .call_close = of("<｜tool▁call▁end｜>"),
                                  .name_ends = {of("<｜tool▁sep｜>"), of("\n"), of("```")},
                                  .literal = {.ends = {of("<｜tool▁call▁end｜>"), of("<｜tool▁calls▁end｜>")}},
                                  .has_typed_names = true});
  return {{section, false, {calls}}, {call, false, {calls}}};
}

Openers deepseek_dsml(const Of& of) {
  const auto xml = invoke_xml(of, "｜DSML｜", "<｜DSML｜function_calls>", "</｜DSML｜function_calls>");
  return {{of("<｜DSML｜function_calls>"), false, {xml}}, {of("<｜DSML｜invoke name=\""), false, {xml}}};
}

Openers longcat(const Of& of) {
  return {{of("<longcat_tool_call>"), false, {tagged_json(of, "<longcat_tool_call>", "</longcat_tool_call>")}}};
}

Openers nemotron(const Of& of) {
  return {{of("<TOOLCALL>"), false, {tagged_json(of, "<TOOLCALL>", "</TOOLCALL>")}}};
}

Openers granite(const Of& of) {
  return {{of("<|tool_call|>"), false, {tagged_json(of, "<|tool_call|>", "")}},
          {of("<tool_call>"), false, {tagged_json(of, "<tool_call>", "</tool_call>")}}};
}

Openers functionary(const Of& of) {
  return {{of("<function="), false, {qwen_xml(of, "", "", false)}}};
}

Openers generic(const Of& of) {
  return {{of("{"), true, {bare_json(true), bare_json(false)}}, {of("```"), true, {bare_json(true), bare_json(false)}}};
}

Openers none(const Of&) { return {}; }

struct Row {
  ToolFormat format;
  std::string_view name;
  std::vector<Texts> shown;  // a template that writes all texts of one of these lists
  Openers (*openers)(const Of&);
  Texts strays;
  Texts markers;  // further texts that may be tokens
  CallIds ids = CallIds::openai;
};

// In the order in which templates are asked: a later row's texts may also stand in templates of an earlier one.
const std::vector<Row>& rows() {
  static const std::vector<Row> kRows = {
      {ToolFormat::minimax, "minimax", {{"<minimax:tool_call>"}}, minimax, {"</minimax:tool_call>"}, {}},
      {ToolFormat::gemma4,
       "gemma4",
       {{"<|tool_call>", "<tool_call|>"}},
       gemma4,
       {"<tool_call|>"},
       {"<|tool_call>", "<|\"|>", "<|tool_response>"}},
      {ToolFormat::function_gemma,
       "function_gemma",
       {{"<start_function_call>"}},
       function_gemma,
       {"<end_function_call>"},
       {"<escape>"}},
      {ToolFormat::longcat, "longcat", {{"<longcat_tool_call>"}}, longcat, {"</longcat_tool_call>"}, {}},
      {ToolFormat::glm, "glm", {{"<arg_key>"}}, glm, {"</tool_call>"}, {"</arg_key>", "<arg_value>", "</arg_value>"}},
      {ToolFormat::lfm2,
       "lfm2",
       {{"<|tool_list_start|>"}, {"<|tool_call_start|>"}},
       lfm2,
       {"<|tool_call_end|>"},
       {"<|tool_call_start|>"}},
      {ToolFormat::seed, "seed", {{"<seed:tool_call>"}}, seed, {"</seed:tool_call>"}, {}},
      {ToolFormat::qwen_xml, "qwen_xml", {{"<tool_call>", "<function="}}, qwen_xml_openers, {"</tool_call>"}, {}},
      {ToolFormat::kimi,
       "kimi",
       {{"<|tool_calls_section_begin|>"}},
       kimi,
       {"<|tool_calls_section_end|>"},
       {"<|tool_call_begin|>", "<|tool_call_end|>", "<|tool_call_argument_begin|>"}},
      {ToolFormat::minicpm5,
       "minicpm5",
       {{"<function name=\"", "<param name=\""}},
       minicpm5,
       {"</function>"},
       {"<function", "<param", "</param>"}},
      {ToolFormat::mistral,
       "mistral",
       {{"[TOOL_CALLS]"}},
       mistral,
       {},
       {"[ARGS]", "[CALL_ID]"},
       CallIds::mistral},
      {ToolFormat::harmony,
       "harmony",
       {{"<|channel|>", "<|message|>"}},
       none,
       {},
       {"<|start|>", "<|channel|>", "<|message|>", "<|constrain|>", "<|end|>", "<|return|>", "<|call|>"}},
      {ToolFormat::deepseek_dsml,
       "deepseek_dsml",
       {{"｜DSML｜"}},
       deepseek_dsml,
       {"</｜DSML｜function_calls>"},
       {"｜DSML｜"}},
      {ToolFormat::deepseek,
       "deepseek",
       {{"<｜tool▁call▁begin｜>"}},
       deepseek,
       {"<｜tool▁calls▁end｜>"},
       {"<｜tool▁call▁end｜>", "<｜tool▁sep｜>"}},
      {ToolFormat::nemotron, "nemotron", {{"<TOOLCALL>"}}, nemotron, {"</TOOLCALL>"}, {}},
      {ToolFormat::granite, "granite", {{"<|tool_call|>"}}, granite, {"</tool_call>"}, {}},
      {ToolFormat::hermes, "hermes", {{"<tool_call>"}}, hermes, {"</tool_call>"}, {}},
      {ToolFormat::functionary, "functionary", {{"<function=", "</function>"}}, functionary, {"</function>"}, {}},
      {ToolFormat::llama,
       "llama",
       {{"<|python_tag|>"}, {"\"name\": ", "\"parameters\": ", "ipython"}},
       llama,
       {},
       {"<|python_tag|>"}},
      {ToolFormat::generic, "generic", {}, generic, {}, {}},
      {ToolFormat::none, "none", {}, none, {}, {}}};
  return kRows;
}

const Row& row_of(ToolFormat format) {
  return *std::ranges::find_if(rows(), [format](const Row& row) { return row.format == format; });
}

}  // namespace

Marker marker_of(const TurnFormat& format, std::string_view text) {
  Marker marker{std::string(text)};
  std::size_t longest = 0;
  for (const auto& [id, token] : format.token_texts) {
    if (token.size() <= longest || !text.starts_with(token)) continue;
    longest = token.size();
    marker.id = id;
  }
  marker.by_id_only = format.is_strict && marker.id >= 0;
  return marker;
}

std::vector<CallOpener> call_openers(const TurnFormat& format) {
  return row_of(format.tools).openers(Of(format));
}

std::vector<std::string_view> stray_closers(ToolFormat format) { return row_of(format).strays; }
CallIds call_ids(ToolFormat format) { return row_of(format).ids; }

std::vector<std::string_view> marker_texts(ToolFormat format) {
  const Row& row = row_of(format);
  Texts texts = row.markers;
  texts.insert(texts.end(), row.strays.begin(), row.strays.end());
  for (const Texts& shown : row.shown) texts.insert(texts.end(), shown.begin(), shown.end());
  return texts;
}

ToolFormat tool_format_of(std::string_view source) {
  const auto writes = [source](std::string_view text) { return source.find(text) != std::string_view::npos; };
  for (const Row& row : rows())
    if (std::ranges::any_of(row.shown, [&](const Texts& texts) { return std::ranges::all_of(texts, writes); }))
      return row.format;
  return ToolFormat::none;
}

std::optional<ToolFormat> tool_format_named(std::string_view name) {
  for (const Row& row : rows())
    if (row.name == name) return row.format;
  return std::nullopt;
}

std::string_view name_of(ToolFormat format) { return row_of(format).name; }

std::vector<std::string_view> tool_format_names() {
  std::vector<std::string_view> names;
  for (const Row& row : rows()) names.push_back(row.name);
  return names;
}

}  // namespace godwit::text
