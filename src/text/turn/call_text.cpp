#include "text/turn/call_text.h"

#include <functional>

#include <fmt/format.h>

#include "text/turn/literal_reader.h"

namespace godwit::text {
namespace {

using Calls = std::span<const WrittenCall>;
using One = std::function<std::string(const WrittenCall&)>;

std::string joined(Calls calls, std::string_view between, const One& one) {
  std::string out;
  for (const WrittenCall& call : calls) out += (out.empty() ? "" : std::string(between)) + one(call);
  return out;
}

std::string json_call(const WrittenCall& call, std::string_view key) {
  return fmt::format("{{\"name\": {}, \"{}\": {}}}", json_string(call.name), key, spaced_json(call.arguments));
}

std::string plain(const Json& value) {
  return value.is_string() ? value.get<std::string>() : spaced_json(value);
}

// Every argument by itself, in order.
std::string each_argument(const WrittenCall& call, std::string_view between,
                          const std::function<std::string(const std::string&, const Json&)>& one) {
  std::string out;
  bool is_first = true;
  for (const auto& [key, value] : call.arguments.items()) {
    if (!is_first) out += between;
    is_first = false;
    out += one(key, value);
  }
  return out;
}

std::string qwen_xml(const WrittenCall& call, std::string_view line) {
  return fmt::format("<function={}>\n", call.name) + each_argument(call, "", [&](const auto& key, const Json& value) {
           return fmt::format("<parameter={}>{}{}{}</parameter>\n", key, line, plain(value), line);
         }) + "</function>";
}

std::string invoke(const WrittenCall& call, std::string_view space, bool is_typed) {
  const auto argument = [&](const auto& key, const Json& value) {
    const std::string type = is_typed ? fmt::format(" string=\"{}\"", value.is_string()) : "";
    return fmt::format("<{0}parameter name=\"{1}\"{2}>{3}</{0}parameter>\n", space, key, type, plain(value));
  };
  return fmt::format("<{0}invoke name=\"{1}\">\n{2}</{0}invoke>\n", space, call.name,
                     each_argument(call, "", argument));
}

std::string minicpm(const WrittenCall& call) {
  return fmt::format("<function name=\"{}\">", call.name) +
         each_argument(call, "", [](const auto& key, const Json& value) {
           const std::string text = plain(value);
           const bool is_raw = value.is_string() && text.find_first_of("<&\n") != std::string::npos;
           return fmt::format("<param name=\"{}\">{}{}{}</param>", key, is_raw ? "<![CDATA[" : "", text,
                              is_raw ? "]]>" : "");
         }) + "</function>";
}

std::string glm(const WrittenCall& call) {
  return "<tool_call>" + call.name + "\n" + each_argument(call, "", [](const auto& key, const Json& value) {
           return fmt::format("<arg_key>{}</arg_key>\n<arg_value>{}</arg_value>\n", key, plain(value));
         }) + "</tool_call>";
}

std::string gemma_value(const Json& value, std::string_view quote) {
  if (value.is_string()) return fmt::format("{0}{1}{0}", quote, value.get_ref<const std::string&>());
  if (!value.is_structured()) return dump_json(value);
  std::string out;
  for (const auto& [key, item] : value.items()) {
    if (!out.empty()) out += ',';
    out += (value.is_object() ? key + ":" : "") + gemma_value(item, quote);
  }
  return value.is_object() ? "{" + out + "}" : "[" + out + "]";
}

std::string python_value(const Json& value) {
  if (value.is_null()) return "None";
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  if (value.is_string()) return json_string(value.get_ref<const std::string&>());
  if (!value.is_structured()) return dump_json(value);
  std::string out;
  for (const auto& [key, item] : value.items()) {
    if (!out.empty()) out += ", ";
    out += (value.is_object() ? json_string(key) + ": " : "") + python_value(item);
  }
  return value.is_object() ? "{" + out + "}" : "[" + out + "]";
}

std::string python_calls(Calls calls) {
  return "[" + joined(calls, ", ", [](const WrittenCall& call) {
           return call.name + "(" + each_argument(call, ", ", [](const auto& key, const Json& value) {
                    return key + "=" + python_value(value);
                  }) + ")";
         }) + "]";
}

std::string mistral(const WrittenCall& call) {
  const std::string id = call.id.empty() ? "" : "[CALL_ID]" + call.id;
  return "[TOOL_CALLS]" + call.name + id + "[ARGS]" + spaced_json(call.arguments);
}

std::string kimi(Calls calls) {
  int index = 0;
  return "<|tool_calls_section_begin|>" + joined(calls, "", [&index](const WrittenCall& call) {
           const std::string id = call.id.empty() ? fmt::format("functions.{}:{}", call.name, index) : call.id;
           ++index;
           return fmt::format("<|tool_call_begin|>{}<|tool_call_argument_begin|>{}<|tool_call_end|>", id,
                              spaced_json(call.arguments));
         }) + "<|tool_calls_section_end|>";
}

std::string deepseek(Calls calls) {
  return "<｜tool▁calls▁begin｜>" + joined(calls, "", [](const WrittenCall& call) {
           return fmt::format("<｜tool▁call▁begin｜>{}<｜tool▁sep｜>{}<｜tool▁call▁end｜>", call.name,
                              spaced_json(call.arguments));
         }) + "<｜tool▁calls▁end｜>";
}

std::string tagged(Calls calls, std::string_view open, std::string_view close, std::string_view line) {
  return joined(calls, "\n", [&](const WrittenCall& call) {
    return fmt::format("{}{}{}{}{}", open, line, json_call(call, "arguments"), line, close);
  });
}

std::string list(Calls calls) {
  return "[" + joined(calls, ", ", [](const WrittenCall& call) { return json_call(call, "arguments"); }) + "]";
}

std::string generic(Calls calls) {
  if (calls.size() == 1) return "{\"tool_call\": " + json_call(calls[0], "arguments") + "}";
  return "{\"tool_calls\": " + list(calls) + "}";
}

}  // namespace

std::string spaced_json(const Json& value) {
  if (!value.is_structured()) return dump_json(value);
  std::string out;
  for (const auto& [key, item] : value.items()) {
    if (!out.empty()) out += ", ";
    out += (value.is_object() ? json_string(key) + ": " : "") + spaced_json(item);
  }
  return value.is_object() ? "{" + out + "}" : "[" + out + "]";
}

std::string call_text(ToolFormat format, Calls calls) {
  switch (format) {
    case ToolFormat::none:
    case ToolFormat::hermes: return tagged(calls, "<tool_call>", "</tool_call>", "\n");
    case ToolFormat::longcat: return tagged(calls, "<longcat_tool_call>", "</longcat_tool_call>", "\n");
    case ToolFormat::qwen_xml:
      return joined(calls, "\n", [](const WrittenCall& call) {
        return "<tool_call>\n" + qwen_xml(call, "\n") + "\n</tool_call>";
      });
    case ToolFormat::seed:
      return joined(calls, "\n", [](const WrittenCall& call) {
        return "<seed:tool_call>\n" + qwen_xml(call, "") + "\n</seed:tool_call>";
      });
    case ToolFormat::gemma4:
      return joined(calls, "", [](const WrittenCall& call) {
        return "<|tool_call>call:" + call.name + gemma_value(call.arguments, "<|\"|>") + "<tool_call|>";
      });
    case ToolFormat::function_gemma:
      return joined(calls, "", [](const WrittenCall& call) {
        return "<start_function_call>call:" + call.name + gemma_value(call.arguments, "<escape>") +
               "<end_function_call>";
      });
    case ToolFormat::llama:
      return joined(calls, "; ", [](const WrittenCall& call) { return json_call(call, "parameters"); });
    case ToolFormat::lfm2: return "<|tool_call_start|>" + python_calls(calls) + "<|tool_call_end|>";
    case ToolFormat::mistral: return joined(calls, "", mistral);
    case ToolFormat::glm: return joined(calls, "\n", glm);
    case ToolFormat::minicpm5: return joined(calls, "\n", minicpm);
    case ToolFormat::kimi: return kimi(calls);
    case ToolFormat::minimax:
      return "<minimax:tool_call>\n" +
             joined(calls, "", [](const WrittenCall& call) { return invoke(call, "", false); }) +
             "</minimax:tool_call>";
    case ToolFormat::deepseek: return deepseek(calls);
    case ToolFormat::deepseek_dsml:
      return "<｜DSML｜function_calls>\n" +
             joined(calls, "", [](const WrittenCall& call) { return invoke(call, "｜DSML｜", true); }) +
             "</｜DSML｜function_calls>";
    case ToolFormat::nemotron: return "<TOOLCALL>" + list(calls) + "</TOOLCALL>";
    case ToolFormat::granite: return "<|tool_call|>" + list(calls);
    case ToolFormat::functionary:
      return joined(calls, "", [](const WrittenCall& call) {
        return fmt::format("<function={}>{}</function>", call.name, spaced_json(call.arguments));
      });
    case ToolFormat::harmony:
      return joined(calls, "<|start|>assistant", [](const WrittenCall& call) {
        return fmt::format("<|channel|>commentary to=functions.{} <|constrain|>json<|message|>{}<|call|>", call.name,
                           spaced_json(call.arguments));
      });
    case ToolFormat::generic: return generic(calls);
  }
  return {};
}

}  // namespace godwit::text
