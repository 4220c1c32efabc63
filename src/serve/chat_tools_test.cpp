// Chat answers with reasoning and calls of tools, whole and streamed, through dispatch().
#include "support/dispatch_fixture.h"

namespace godwit::serve {
namespace {

using decode::FinishReason;

constexpr auto kPath = "/v1/chat/completions";

constexpr std::string_view kToolTemplate =
    "{% if tools %}tools:{% for t in tools %} {{ t.function.name }}{% endfor %}\n{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}"
    "{% for c in m.tool_calls or [] %}[{{ c.id }} {{ c.function.name }} {{ c.function.arguments | tojson "
    "}}]{% endfor %}"
    "{% if m.tool_call_id %}({{ m.tool_call_id }}){% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% if opens %}<think>\n{% endif %}{% endif %}";

const Json kTools = Json::parse(R"([
  {"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"x":{"type":"string"}}}}},
  {"type":"function","function":{"name":"g","description":"no arguments"}}])");

std::string call_text(std::string_view name, std::string_view arguments) {
  return fmt::format("<tool_call>\n{{\"name\": \"{}\", \"arguments\": {}}}\n</tool_call>", name, arguments);
}

// What a client adds up from the chunks of one choice, as the official package does it.
struct Sum {
  Json content = nullptr, reasoning = nullptr, calls = Json::array(), logprobs = Json::array(),
       ids = Json::array();
  Json function_call = nullptr;
  std::string finish;
  int finishes = 0;

  static void extend(Json& target, const Json& more) {
    if (target.is_null()) target = "";
    target.get_ref<std::string&>() += more.get<std::string>();
  }
  void add(const Json& choice) {
    const Json& delta = choice["delta"];
    const bool is_other = delta.contains("tool_calls") || delta.contains("reasoning_content") ||
                          delta.contains("function_call") || !choice["finish_reason"].is_null();
    EXPECT_NE(delta.contains("content"), is_other) << delta;
    if (delta.contains("content")) extend(content, delta["content"]);
    if (delta.contains("reasoning_content")) {
      extend(reasoning, delta["reasoning_content"]);
      EXPECT_EQ(delta["reasoning"], delta["reasoning_content"]);
    }
    for (const Json& call : delta.value("tool_calls", Json::array())) add_call(call);
    if (delta.contains("function_call")) {
      if (function_call.is_null())
        function_call = {{"name", delta["function_call"].at("name")}, {"arguments", ""}};
      extend(function_call["arguments"], delta["function_call"]["arguments"]);
    }
    if (choice["logprobs"].is_object())
      for (const Json& entry : choice["logprobs"]["content"]) logprobs.push_back(entry);
    for (const Json& id : choice.value("token_ids", Json::array())) ids.push_back(id);
    if (choice["finish_reason"].is_null()) return;
    finish = choice["finish_reason"];
    ++finishes;
  }
  void add_call(const Json& call) {
    ASSERT_TRUE(call["index"].is_number_integer());
    const auto index = call["index"].get<std::size_t>();
    ASSERT_LE(index, calls.size());
    if (index == calls.size()) {
      const Json& function = call.at("function");
      calls.push_back({{"id", call.at("id")},
                       {"type", "function"},
                       {"function", {{"name", function.at("name")}, {"arguments", ""}}}});
    } else {
      EXPECT_FALSE(call.contains("id"));
      EXPECT_FALSE(call["function"].contains("name"));
    }
    extend(calls[index]["function"]["arguments"], call.at("function").at("arguments"));
  }
};

struct ChatToolsTest : DispatchFixture {
  ChatToolsTest() {
    model.chat_template = &tool_template;
    model.turn_format.tools = text::ToolFormat::hermes;
    model.turn_format.reasoning_open = "<think>";
    model.turn_format.reasoning_close = "</think>";
  }
  static Json body(Json more = Json::object()) {
    Json json{{"messages", Json::array({{{"role", "user"}, {"content", "hi"}}})}, {"seed", 7}};
    if (more.is_object()) json.update(more);
    return json;
  }
  Json message(const std::string& answer, Json more = Json::object(),
               FinishReason finish = FinishReason::stop) {
    play({answer}, finish);
    return json_of(post(kPath, body(std::move(more))))["choices"][0];
  }
  std::vector<Sum> sums(const Json& asked) {
    std::vector<Sum> out(asked.value("n", 1));
    const Collector sink = stream_of(asked, kPath);
    EXPECT_EQ(sink.events.back(), "[DONE]");
    for (std::size_t i = 0; i + 1 < sink.events.size(); ++i) {
      const Json chunk = sink.json(i);
      for (const Json& choice : chunk["choices"]) out.at(choice["index"].get<std::size_t>()).add(choice);
    }
    return out;
  }

  text::ChatTemplate tool_template{std::string(kToolTemplate), Json::object(), "template"};
};

TEST_F(ChatToolsTest, CallsAndReasoningLeaveTheContent) {
  const Json choice =
      message("<think>hm</think>\nHi " + call_text("f", R"({"x": "a"})") + "\n" + call_text("f", "{}"),
              {{"tools", kTools}});
  const Json& made = choice["message"];
  EXPECT_EQ(made["content"], "Hi ");
  EXPECT_EQ(made["reasoning_content"], "hm");
  EXPECT_EQ(made["reasoning"], "hm");
  EXPECT_TRUE(made["refusal"].is_null());
  ASSERT_EQ(made["tool_calls"].size(), 2u);
  EXPECT_EQ(made["tool_calls"][0]["function"]["name"], "f");
  EXPECT_EQ(Json::parse(made["tool_calls"][0]["function"]["arguments"].get<std::string>()),
            Json({{"x", "a"}}));
  EXPECT_NE(made["tool_calls"][0]["id"], made["tool_calls"][1]["id"]);
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  const Json only = message(call_text("g", "{}"), {{"tools", kTools}})["message"];
  EXPECT_TRUE(only["content"].is_null());
  const Json plain = message("ok", {{"tools", kTools}})["message"];
  EXPECT_FALSE(plain.contains("tool_calls"));
  EXPECT_FALSE(plain.contains("reasoning_content"));
  EXPECT_EQ(message("<think>x", {}, FinishReason::length)["message"]["content"], "");
}

// T-2.1 for every combination of fields that shapes an answer.
TEST_F(ChatToolsTest, ChunksAddUpToTheWholeAnswer) {
  const std::vector<std::string> answers = {
      "plain",
      "<think>a b</think>\n\nthen c",
      "<think>only",
      "x" + call_text("f", R"({"x": "é\n\"q\" </tool"})"),
      "<think>t</think>" + call_text("g", "{}") + "\n" + call_text("f", R"({"x": "2"})"),
      "a < b <tool_ <toolbox> 😸",
      call_text("f", R"({"x": )")};
  int runs = 0;
  for (const std::string& answer : answers)
    for (int bits = 0; bits < 32; ++bits) {
      Json asked = body();
      if (bits & 1) asked["tools"] = kTools;
      if (bits & 2) asked.update({{"logprobs", true}, {"top_logprobs", 1}});
      if (bits & 4) asked["n"] = 2;
      if (bits & 8) asked["return_token_ids"] = true;
      if (bits & 16) asked["stream_options"] = {{"include_usage", true}};
      const FinishReason finish = runs++ % 2 ? FinishReason::stop : FinishReason::length;
      play({answer, answer, answer, answer}, finish);
      const Json whole = json_of(post(kPath, asked));
      const std::vector<Sum> streamed = sums(asked);
      generator.scripts.clear();
      for (std::size_t i = 0; i < streamed.size(); ++i) {
        const Json& choice = whole["choices"][i];
        const Json& made = choice["message"];
        EXPECT_EQ(streamed[i].content, made["content"].is_null() ? Json("") : made["content"]);
        EXPECT_EQ(streamed[i].reasoning, made.value("reasoning_content", Json(nullptr)));
        EXPECT_EQ(streamed[i].calls, made.value("tool_calls", Json::array()));
        EXPECT_EQ(streamed[i].finish, choice["finish_reason"]);
        EXPECT_EQ(streamed[i].finishes, 1);
        EXPECT_EQ(streamed[i].ids, choice.value("token_ids", Json::array()));
        if (bits & 2) {
          EXPECT_EQ(streamed[i].logprobs, choice["logprobs"]["content"]);
        }
        for (const Json& call : streamed[i].calls)
          EXPECT_TRUE(Json::accept(call["function"]["arguments"].get<std::string>())) << call;
      }
    }
}

TEST_F(ChatToolsTest, LogprobsAreThoseOfTheContent) {
  const Json choice = message("<think>hm</think>\n\nHi there" + call_text("g", "{}"),
                              {{"tools", kTools}, {"logprobs", true}});
  std::string spelled_out;
  for (const Json& entry : choice["logprobs"]["content"])
    for (const Json& byte : entry["bytes"]) spelled_out += static_cast<char>(byte.get<int>());
  EXPECT_EQ(spelled_out, choice["message"]["content"]);
}

TEST_F(ChatToolsTest, UsageCountsReasoningAndComesLastWhenAskedFor) {
  play({"<think>hm</think>ok" + call_text("g", "{}")});
  const Collector sink =
      stream_of(body({{"tools", kTools}, {"stream_options", {{"include_usage", true}}}}), kPath);
  const Json last = sink.json(sink.events.size() - 2);
  EXPECT_EQ(last["choices"], Json::array());
  // Those of the marker's beginning count as soon as they are one.
  const int reasoning = last["usage"]["completion_tokens_details"]["reasoning_tokens"];
  EXPECT_EQ(static_cast<std::size_t>(reasoning), std::string(">hm</think>").size());
  EXPECT_FALSE(sink.json(sink.events.size() - 3)["choices"][0]["finish_reason"].is_null());
}

TEST_F(ChatToolsTest, ToolChoiceDecidesWhatTheTemplateShowsAndTheParserReads) {
  const std::string answer = call_text("g", "{}");
  const Json none = message(answer, {{"tools", kTools}, {"tool_choice", "none"}});
  EXPECT_EQ(prompt_text(0).find("tools:"), std::string::npos);
  EXPECT_FALSE(none["message"].contains("tool_calls"));
  EXPECT_EQ(none["message"]["content"], answer);
  message(answer, {{"tools", kTools}});
  EXPECT_TRUE(prompt_text(1).starts_with("tools: f g<"));
  const Json allowed = Json::parse(R"({"type":"allowed_tools","allowed_tools":{"mode":"auto",
    "tools":[{"type":"function","function":{"name":"g"}}]}})");
  message(answer, {{"tools", kTools}, {"tool_choice", allowed}});
  EXPECT_TRUE(prompt_text(2).starts_with("tools: g<"));
}

TEST_F(ChatToolsTest, WithoutParallelCallsTheFirstEndsTheAnswer) {
  const std::string two = call_text("g", "{}") + "\n" + call_text("f", "{}");
  const Json asked{{"tools", kTools}, {"parallel_tool_calls", false}};
  const Json choice = message(two, asked);
  EXPECT_EQ(choice["message"]["tool_calls"].size(), 1u);
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  play({two});
  EXPECT_EQ(sums(body(asked))[0].calls.size(), 1u);
}

TEST_F(ChatToolsTest, FunctionsAreAnsweredInTheirOwnForm) {
  const Json functions = Json::array({{{"name", "f"}, {"parameters", {{"type", "object"}}}}});
  const std::string answer = call_text("f", R"({"x": 1})");
  const Json choice = message(answer, {{"functions", functions}});
  EXPECT_EQ(choice["finish_reason"], "function_call");
  EXPECT_EQ(choice["message"]["function_call"]["name"], "f");
  EXPECT_FALSE(choice["message"].contains("tool_calls"));
  play({answer});
  const Sum sum = sums(body({{"functions", functions}}))[0];
  EXPECT_EQ(sum.function_call, choice["message"]["function_call"]);
  EXPECT_EQ(sum.finish, "function_call");
  // And it comes back as what templates know.
  const Json history = Json::parse(R"([{"role":"user","content":"hi"},
    {"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{\"x\":1}"}},
    {"role":"function","name":"f","content":"42"}])");
  message("ok", {{"messages", history}});
  EXPECT_NE(prompt_text(2).find("[call_1 f {\"x\": 1}]"), std::string::npos) << prompt_text(2);
  EXPECT_NE(prompt_text(2).find("tool\n42(call_1)"), std::string::npos);
}

TEST_F(ChatToolsTest, RefusalsNameTheField) {
  const std::vector<std::pair<Json, std::string>> table = {
      {{{"tools", 5}}, "400 tools invalid_value"},
      {{{"tools", {5}}}, "400 tools[0] invalid_value"},
      {{{"tools", {{{"type", "function"}}}}}, "400 tools[0].function invalid_value"},
      {{{"tools", {{{"type", "function"}, {"function", {{"name", "a b"}}}}}}},
       "400 tools[0].function.name invalid_value"},
      {{{"tools", {kTools[0], kTools[0]}}}, "400 tools[1].function.name invalid_value"},
      {{{"tools", kTools}, {"tool_choice", "some"}}, "400 tool_choice invalid_value"},
      {{{"tools", kTools}, {"tool_choice", {{"type", "function"}, {"function", {{"name", "h"}}}}}},
       "400 tool_choice.function.name invalid_value"},
      {{{"tool_choice", "required"}}, "400 tool_choice invalid_value"},
      {{{"tools", kTools}, {"parallel_tool_calls", "no"}}, "400 parallel_tool_calls invalid_value"},
      {{{"functions", {{{"name", "f"}}}}, {"tools", kTools}}, "400 functions invalid_value"},
      {{{"function_call", {{"name", "f"}}}}, "400 function_call invalid_value"},
      {{{"add_generation_prompt", true}, {"continue_final_message", true}},
       "400 continue_final_message invalid_value"},
      {{{"continue_final_message", true}}, "400 continue_final_message invalid_value"},
      {{{"stop_token_ids", {258}}}, "400 stop_token_ids invalid_value"},
      {{{"min_tokens", 3}, {"max_tokens", 2}}, "400 min_tokens invalid_value"},
      {{{"cache_salt", ""}}, "400 cache_salt invalid_value"},
      {{{"cache_salt", 5}}, "400 cache_salt invalid_value"},
      {{{"cache_salt", std::string(1025, 'x')}}, "400 cache_salt invalid_value"},
      {{{"skip_special_tokens", false}}, "400 skip_special_tokens unsupported_parameter"},
      {{{"best_of", 2}}, "400 best_of unsupported_parameter"},
  };
  for (const auto& [fields, want] : table) EXPECT_EQ(refusal_of(post(kPath, body(fields))), want) << fields;
  EXPECT_TRUE(generator.requests.empty());
}

TEST_F(ChatToolsTest, AStrictToolThatCannotBeHeldToItsSchemaIsRefusedByName) {
  Json tools = kTools;
  tools[0]["function"]["parameters"]["properties"]["x"] = {{"not", {{"const", "a"}}}};
  play({"ok", "ok"});
  const Json loose = body({{"tools", tools}, {"tool_choice", "required"}});
  EXPECT_NE(post(kPath, loose).headers.find("warning").value_or("").find("#/properties/x/not"), std::string::npos);
  tools[0]["function"]["strict"] = true;
  for (const auto* choice : {"auto", "required"}) {
    const Response refused = post(kPath, body({{"tools", tools}, {"tool_choice", choice}}));
    EXPECT_EQ(refusal_of(refused), "400 tools invalid_value");
    EXPECT_NE(refused.body.find("'f' is strict"), std::string::npos) << refused.body;
    EXPECT_NE(refused.body.find("#/properties/x/not"), std::string::npos) << refused.body;
  }
  EXPECT_EQ(post(kPath, body({{"tools", tools}, {"tool_choice", "none"}})).status, 200) << "nothing is called";
}

TEST_F(ChatToolsTest, AFormOfTheContentMayStandBesideToolsThatMayBeCalled) {
  const Json schema = Json::parse(R"({"type":"object","properties":{"b":{"type":"boolean"}},"required":["b"]})");
  const Json format{{"type", "json_schema"}, {"json_schema", {{"name", "n"}, {"schema", schema}, {"strict", true}}}};
  const Json more{{"tools", kTools}, {"response_format", format}, {"reasoning_effort", "none"}};
  EXPECT_EQ(message(R"({"b": true})", more)["message"]["content"], R"({"b": true})");
  EXPECT_EQ(message(call_text("g", "{}"), more)["message"]["tool_calls"][0]["function"]["name"], "g");
  const auto filter = generator.requests[0].constraint->start();
  const auto mask = filter->mask();
  for (int id = 0; id < 256; ++id)
    EXPECT_EQ(mask[static_cast<std::size_t>(id) / 32] >> (id % 32) & 1, id == '{' || id == '<') << id;
  const auto refusal = [&](Json fields) {
    fields["tools"] = kTools;
    return refusal_of(post(kPath, body(std::move(fields))));
  };
  EXPECT_EQ(refusal({{"guided_regex", "a+"}}), "400 guided_regex unsupported_parameter");
  EXPECT_EQ(refusal({{"guided_json", {{"not", Json::object()}}}}), "400 guided_json invalid_value");
}

TEST_F(ChatToolsTest, FieldsReachTheEngine) {
  message("ok", {{"stop_token_ids", {5}},
                 {"min_tokens", 2},
                 {"include_stop_str_in_output", true},
                 {"priority", -3},
                 {"cache_salt", "tenant"},
                 {"stop", "z"},
                 {"ignore_eos", true}});
  const decode::GenerationRequest& made = generator.requests[0];
  EXPECT_EQ(made.stop_token_ids, std::vector{5});
  EXPECT_EQ(made.min_tokens, 2);
  EXPECT_TRUE(made.include_stop_text);
  EXPECT_EQ(made.priority, -3);
  EXPECT_EQ(made.cache_salt, "tenant");
  EXPECT_TRUE(made.ignore_eos);
  EXPECT_EQ(made.stops_begin_after, "</think>");
  EXPECT_EQ(made.stops_wait_if, "<think>") << "an answer that does not think ends at once";
  message("ok", {{"stop", "z"}, {"reasoning_effort", "none"}});
  EXPECT_EQ(generator.requests[1].stops_begin_after, "");
}

TEST_F(ChatToolsTest, APromptThatOpensTheReasoningBeginsInIt) {
  const Json more{{"chat_template_kwargs", {{"opens", true}}}, {"stop", "z"}};
  const Json made = message("hm</think>\n\nok", more)["message"];
  EXPECT_EQ(made["reasoning_content"], "hm");
  EXPECT_EQ(made["content"], "ok");
  EXPECT_EQ(generator.requests[0].stops_begin_after, "</think>");
  EXPECT_EQ(generator.requests[0].stops_wait_if, "");
  const Json hidden = message("hm</think>\n\nok", {{"chat_template_kwargs", {{"opens", true}}},
                                                   {"include_reasoning", false}})["message"];
  EXPECT_FALSE(hidden.contains("reasoning_content"));
  EXPECT_EQ(hidden["content"], "ok");
}

TEST_F(ChatToolsTest, TheLastMessageOfAnAssistantIsTheBeginningOfTheAnswer) {
  const auto prompt = [&](Json last, Json more = Json::object()) {
    more["messages"] = Json::array({{{"role", "user"}, {"content", "hi"}}, std::move(last)});
    generator.requests.clear();
    const std::string content = message(" more", more)["message"]["content"];
    EXPECT_EQ(content, " more");
    return prompt_text();
  };
  const Json answer{{"role", "assistant"}, {"content", "The answer is"}};
  const std::string start = "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n";
  EXPECT_EQ(prompt(answer), start + "The answer is");
  EXPECT_EQ(prompt(answer, {{"continue_final_message", true}, {"add_generation_prompt", false}}),
            start + "The answer is");
  EXPECT_EQ(prompt(answer, {{"add_generation_prompt", true}}),
            start + "The answer is<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(prompt(answer, {{"chat_template_kwargs", {{"opens", true}}}}),
            start + "<think>\n\n</think>\n\nThe answer is");
}

// Case 39: instructions are neither lost nor doubled.
TEST_F(ChatToolsTest, EveryRoleReachesThePromptOnce) {
  const auto chat = [](std::vector<std::pair<std::string, std::string>> turns) {
    Json messages = Json::array();
    for (const auto& [role, text] : turns) messages.push_back({{"role", role}, {"content", text}});
    return messages;
  };
  message("ok", {{"messages", chat({{"developer", "be brief"}, {"user", "a"}})}});
  EXPECT_TRUE(prompt_text(0).starts_with("<|im_start|>system\nbe brief<|im_end|>"));
  message("ok", {{"messages", chat({{"system", "s1"}, {"user", "a"}, {"system", "s2"}, {"user", "b"}})}});
  for (const auto* text : {"s1", "s2"}) {
    const std::size_t first = prompt_text(1).find(text);
    EXPECT_NE(first, std::string::npos);
    EXPECT_EQ(prompt_text(1).find(text, first + 1), std::string::npos);
  }
  EXPECT_EQ(refusal_of(post(kPath, {{"messages", chat({{"banana", "x"}})}})),
            "400 messages[0].role invalid_value");
}

}  // namespace
}  // namespace godwit::serve
