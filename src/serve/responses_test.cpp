// /v1/responses through dispatch(): events, items, chains, refusals.
#include "support/dispatch_fixture.h"

namespace godwit::serve {
namespace {

using decode::FinishReason;

constexpr auto kPath = "/v1/responses";

struct ResponsesTest : DispatchFixture {
  ResponsesTest() {
    model.turn_format.tools = text::ToolFormat::hermes;
    model.turn_format.reasoning_open = "<think>";
    model.turn_format.reasoning_close = "</think>";
  }
  Json make(Json body, const std::string& answer = "ok") {
    play({answer});
    return json_of(post(kPath, body));
  }
  // Ids and times differ from run to run.
  static void strip(Json& value) {
    if (value.is_object())
      for (const auto* key : {"id", "item_id", "call_id", "response_id", "created_at", "completed_at"})
        if (value.contains(key) && value[key].is_string()) value[key] = "";
    if (value.is_structured())
      for (Json& inner : value) strip(inner);
  }
  static Json stripped(Json value) {
    strip(value);
    return value;
  }
  static std::vector<std::string> types_of(const Json& items) {
    std::vector<std::string> types;
    for (const Json& item : items) types.push_back(item["type"]);
    return types;
  }
};

const Json kTools = Json::parse(R"([{"type":"function","name":"f","parameters":{"type":"object",
  "properties":{"x":{"type":"integer"}}},"strict":false}])");

constexpr auto kBusyAnswer =
    "<think>hm</think>\nLet me see.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n</tool_call>";

TEST_F(ResponsesTest, AWholeAnswerHasTheDocumentedShape) {
  const Json made = make({{"input", "hi"}, {"metadata", {{"k", "v"}}}, {"temperature", 0.5}});
  EXPECT_TRUE(made["id"].get<std::string>().starts_with("resp_"));
  EXPECT_EQ(made["object"], "response");
  EXPECT_EQ(made["status"], "completed");
  EXPECT_EQ(made["created_at"], 1234);
  EXPECT_EQ(made["completed_at"], 1234);
  EXPECT_EQ(made["model"], "org/tiny");
  EXPECT_EQ(made["metadata"]["k"], "v");
  EXPECT_EQ(made["temperature"], 0.5);
  EXPECT_EQ(made["tool_choice"], "auto");
  EXPECT_EQ(made["tools"], Json::array());
  EXPECT_EQ(made["parallel_tool_calls"], true);
  EXPECT_EQ(made["truncation"], "disabled");
  for (const auto* key :
       {"error", "incomplete_details", "instructions", "previous_response_id", "max_output_tokens"})
    EXPECT_TRUE(made.contains(key) && made[key].is_null()) << key;
  ASSERT_EQ(made["output"].size(), 1u);
  EXPECT_EQ(stripped(made["output"][0]),
            Json::parse(R"({"type":"message","id":"","role":"assistant","status":"completed",
    "content":[{"type":"output_text","text":"ok","annotations":[],"logprobs":[]}]})"));
  EXPECT_EQ(made["usage"]["output_tokens"], 2);
  EXPECT_EQ(made["usage"]["input_tokens_details"]["cached_tokens"], 2);
  EXPECT_EQ(made["usage"]["total_tokens"], made["usage"]["input_tokens"].get<int>() + 2);
}

TEST_F(ResponsesTest, EventsComeInOrderWithNumbersAndTellTheWholeAnswer) {
  play({kBusyAnswer, kBusyAnswer});
  const Json body{{"input", "hi"}, {"tools", kTools}};
  const Json whole = json_of(post(kPath, body));
  const Collector sink = stream_of(body, kPath);
  std::vector<std::string> order;
  Json items = Json::array();
  std::string text, arguments, reasoning;
  for (std::size_t i = 0; i < sink.events.size(); ++i) {
    const Json event = sink.json(i);
    EXPECT_EQ(event["type"], sink.names[i]);
    EXPECT_EQ(event["sequence_number"], i);
    const std::string type = event["type"];
    if (order.empty() || order.back() != type) order.push_back(type);
    if (type == "response.output_item.added") {
      EXPECT_EQ(event["output_index"], items.size());
    }
    if (type == "response.output_item.done") items.push_back(event["item"]);
    if (type == "response.output_text.delta") {
      EXPECT_TRUE(event["logprobs"].is_array());
      EXPECT_EQ(event["content_index"], 0);
      text += event["delta"];
    }
    if (type == "response.reasoning_text.delta") reasoning += event["delta"];
    if (type == "response.function_call_arguments.delta") arguments += event["delta"];
    if (type == "response.function_call_arguments.done") {
      EXPECT_EQ(event["name"], "f");
      EXPECT_EQ(event["arguments"], arguments);
    }
  }
  const std::vector<std::string> want = {"response.created",
                                         "response.in_progress",
                                         "response.output_item.added",
                                         "response.content_part.added",
                                         "response.reasoning_text.delta",
                                         "response.reasoning_text.done",
                                         "response.content_part.done",
                                         "response.output_item.done",
                                         "response.output_item.added",
                                         "response.content_part.added",
                                         "response.output_text.delta",
                                         "response.output_text.done",
                                         "response.content_part.done",
                                         "response.output_item.done",
                                         "response.output_item.added",
                                         "response.function_call_arguments.delta",
                                         "response.function_call_arguments.done",
                                         "response.output_item.done",
                                         "response.completed"};
  EXPECT_EQ(order, want);
  const Json last = sink.json(sink.events.size() - 1)["response"];
  EXPECT_EQ(last["output"], items);
  EXPECT_EQ(types_of(items), (std::vector<std::string>{"reasoning", "message", "function_call"}));
  EXPECT_EQ(reasoning, "hm");
  EXPECT_EQ(text, items[1]["content"][0]["text"]);
  EXPECT_EQ(Json::parse(arguments), Json({{"x", 1}}));
  EXPECT_EQ(stripped(last), stripped(whole));
  EXPECT_GT(whole["usage"]["output_tokens_details"]["reasoning_tokens"].get<int>(), 0);
}

TEST_F(ResponsesTest, AnAnswerWithoutAWordIsAnEmptyMessage) {
  decode::TokenEvent end;
  end.finish = FinishReason::stop;
  generator.scripts = {{end}};
  const Json made = json_of(post(kPath, {{"input", "hi"}}));
  ASSERT_EQ(made["output"].size(), 1u);
  EXPECT_EQ(made["output"][0]["content"][0]["text"], "");
}

TEST_F(ResponsesTest, TheLimitLeavesAnIncompleteResponse) {
  play({"abc"}, FinishReason::length);
  const Collector sink = stream_of({{"input", "hi"}, {"max_output_tokens", 3}}, kPath);
  const Json last = sink.json(sink.events.size() - 1);
  EXPECT_EQ(last["type"], "response.incomplete");
  EXPECT_EQ(last["response"]["status"], "incomplete");
  EXPECT_EQ(last["response"]["incomplete_details"]["reason"], "max_output_tokens");
  EXPECT_EQ(last["response"]["output"][0]["status"], "incomplete");
  EXPECT_EQ(generator.requests[0].max_tokens, 3);
}

TEST_F(ResponsesTest, AFailureInTheMiddleEndsWithResponseFailed) {
  generator.scripts = {spelled("ok", FinishReason::none)};
  generator.breaks = true;
  const Collector sink = stream_of({{"input", "hi"}}, kPath);
  const std::size_t count = sink.events.size();
  EXPECT_EQ(sink.json(count - 2)["type"], "error");
  const Json last = sink.json(count - 1);
  EXPECT_EQ(last["type"], "response.failed");
  EXPECT_EQ(last["response"]["status"], "failed");
  EXPECT_EQ(last["response"]["error"]["code"], "server_error");
  EXPECT_EQ(last["sequence_number"], count - 1);
}

TEST_F(ResponsesTest, AChainOfThreeTurnsIsThePromptOfOneFlatInput) {
  const Json first = make({{"input", "one"}, {"instructions", "be brief"}}, "A");
  const Json second = make({{"input", "two"}, {"previous_response_id", first["id"]}}, "B");
  EXPECT_EQ(ask("DELETE", "/v1/responses/" + first["id"].get<std::string>()).status, 200);
  make({{"input", "three"}, {"previous_response_id", second["id"]}}, "C");
  const auto message = [](const char* role, const char* text) {
    return Json{{"role", role}, {"content", text}};
  };
  make({{"input", Json::array({message("user", "one"), message("assistant", "A"), message("user", "two"),
                               message("assistant", "B"), message("user", "three")})}},
       "C");
  EXPECT_NE(prompt_text(0).find("be brief"), std::string::npos);
  EXPECT_EQ(prompt_text(1).find("be brief"), std::string::npos) << "instructions are not inherited";
  EXPECT_EQ(prompt_text(2), prompt_text(3));
}

TEST_F(ResponsesTest, WhatIsNotStoredOrUnknownIsNotFound) {
  const Json made = make({{"input", "hi"}, {"store", false}});
  const std::string id = made["id"];
  EXPECT_EQ(refusal_of(ask("GET", "/v1/responses/" + id)), "404 response_id response_not_found");
  EXPECT_EQ(refusal_of(post(kPath, {{"input", "x"}, {"previous_response_id", id}})),
            "404 previous_response_id previous_response_not_found");
  EXPECT_EQ(refusal_of(ask("DELETE", "/v1/responses/resp_x")), "404 response_id response_not_found");
}

TEST_F(ResponsesTest, StoredResponsesAreShownListedAndDeleted) {
  const Json first = make({{"input", "one"}}, "A");
  const Json second = make({{"input", "two"}, {"previous_response_id", first["id"]}}, "B");
  const std::string path = "/v1/responses/" + second["id"].get<std::string>();
  EXPECT_EQ(json_of(ask("GET", path)), second);
  const Json ascending = json_of(ask("GET", path + "/input_items?order=asc"));
  ASSERT_EQ(ascending["data"].size(), 3u);
  EXPECT_EQ(ascending["data"][0]["content"][0]["text"], "one");
  EXPECT_EQ(ascending["data"][1], first["output"][0]);
  const Json page = json_of(ask("GET", path + "/input_items?limit=1"));
  EXPECT_EQ(page["data"][0]["content"][0]["text"], "two");
  EXPECT_EQ(page["has_more"], true);
  const Json rest = json_of(ask("GET", path + "/input_items?after=" + page["last_id"].get<std::string>()));
  EXPECT_EQ(rest["data"].size(), 2u);
  EXPECT_EQ(rest["has_more"], false);
  EXPECT_EQ(refusal_of(ask("GET", path + "/input_items?limit=x")), "400 limit invalid_value");
  EXPECT_EQ(refusal_of(ask("POST", path + "/cancel", "{}")), "400 response_id invalid_value");
  EXPECT_EQ(ask("GET", path + "/nothing").status, 404);
  EXPECT_EQ(json_of(ask("DELETE", path))["deleted"], true);
  EXPECT_EQ(ask("GET", path).status, 404);
}

TEST_F(ResponsesTest, AToolLoopGoesThroughItemsAndThroughTheChain) {
  const Json first = make({{"input", "call f"}, {"tools", kTools}}, kBusyAnswer);
  const Json call = first["output"][2];
  const Json result{{"type", "function_call_output"}, {"call_id", call["call_id"]}, {"output", "42"}};
  make({{"input", Json::array({result})}, {"previous_response_id", first["id"]}, {"tools", kTools}}, "done");
  Json items = Json::array({{{"role", "user"}, {"content", "call f"}}});
  items.insert(items.end(), first["output"].begin(), first["output"].end());
  items.push_back(result);
  make({{"input", items}, {"tools", kTools}}, "done");
  EXPECT_EQ(prompt_text(1), prompt_text(2));
  EXPECT_NE(prompt_text(1).find("42"), std::string::npos);
  const Json stray{{"type", "function_call_output"}, {"call_id", "call_x"}, {"output", "1"}};
  EXPECT_EQ(refusal_of(post(kPath, {{"input", Json::array({stray})}})), "400 input[0].call_id invalid_value");
}

TEST_F(ResponsesTest, ReferencesStandForStoredItems) {
  const Json first = make({{"input", "one"}}, "A");
  const Json reference{{"type", "item_reference"}, {"id", first["output"][0]["id"]}};
  make({{"input", Json::array({reference, {{"role", "user"}, {"content", "two"}}})}}, "B");
  EXPECT_NE(prompt_text(1).find("assistant\nA"), std::string::npos);
  const Json unknown{{"type", "item_reference"}, {"id", "msg_x"}};
  EXPECT_EQ(refusal_of(post(kPath, {{"input", Json::array({unknown})}})), "404 input[0].id item_not_found");
}

TEST_F(ResponsesTest, LogprobsComeWhenTheyAreIncluded) {
  play({"ok", "ok"});
  const Json body{{"input", "hi"}, {"include", {"message.output_text.logprobs"}}, {"top_logprobs", 2}};
  const Json whole = json_of(post(kPath, body))["output"][0]["content"][0]["logprobs"];
  ASSERT_EQ(whole.size(), 2u);
  EXPECT_EQ(whole[1]["token"], "k");
  EXPECT_EQ(whole[0]["top_logprobs"].size(), 2u);
  const Collector sink = stream_of(body, kPath);
  Json streamed = Json::array();
  for (std::size_t i = 0; i < sink.events.size(); ++i) {
    const Json event = sink.json(i);
    if (event["type"] == "response.output_text.delta")
      for (const Json& entry : event["logprobs"]) streamed.push_back(entry);
  }
  EXPECT_EQ(streamed, whole);
}

TEST_F(ResponsesTest, RefusalsNameTheField) {
  const std::vector<std::pair<Json, std::string>> table = {
      {{{"x", 1}}, "400 input invalid_value"},
      {{{"input", 5}}, "400 input invalid_value"},
      {{{"input", Json::array()}}, "400 input invalid_value"},
      {{{"input", {{{"type", "banana"}}}}}, "400 input[0].type invalid_value"},
      {{{"input", {{{"role", "banana"}, {"content", ""}}}}}, "400 input[0].role invalid_value"},
      {{{"input", {{{"role", "user"}}}}}, "400 input[0].content invalid_value"},
      {{{"input", {{{"role", "user"}, {"content", {{{"type", "input_image"}}}}}}}},
       "400 input[0].content[0] unsupported_parameter"},
      {{{"input", "x"}, {"background", true}}, "400 background unsupported_parameter"},
      {{{"input", "x"}, {"conversation", "c"}}, "400 conversation unsupported_parameter"},
      {{{"input", "x"}, {"max_output_tokens", 0}}, "400 max_output_tokens invalid_value"},
      {{{"input", "x"}, {"n", 2}}, "400 n unsupported_parameter"},
      {{{"input", "x"}, {"truncation", "maybe"}}, "400 truncation invalid_value"},
      {{{"input", "x"}, {"reasoning", {{"effort", "huge"}}}}, "400 reasoning.effort invalid_value"},
      {{{"input", "x"}, {"text", {{"format", {{"type", "xml"}}}}}}, "400 text.format.type invalid_value"},
      {{{"input", "x"}, {"text", {{"format", {{"type", "json_schema"}}}}}},
       "400 text.format.schema invalid_value"},
      {{{"input", "x"}, {"tools", {{{"type", "function"}}}}}, "400 tools[0].name invalid_value"},
      {{{"input", "x"}, {"tool_choice", {{"type", "function"}, {"name", "g"}}}},
       "400 tool_choice.name invalid_value"},
      {{{"input", "x"}, {"top_logprobs", 21}}, "400 top_logprobs invalid_value"},
  };
  for (const auto& [body, want] : table) EXPECT_EQ(refusal_of(post(kPath, body)), want) << body;
  EXPECT_TRUE(generator.requests.empty());
}

TEST_F(ResponsesTest, OtherKindsOfToolsAreLeftOut) {
  Json tools = kTools;
  tools.push_back({{"type", "custom"}, {"name", "patch"}});
  tools.push_back({{"type", "web_search_preview"}});
  EXPECT_EQ(make({{"input", "x"}, {"tools", tools}})["status"], "completed");
}

TEST_F(ResponsesTest, TokensOfAnInputAreCountedWithoutAnAnswer) {
  const Json counted = json_of(post("/v1/responses/input_tokens", {{"input", "hi"}}));
  EXPECT_EQ(counted["object"], "response.input_tokens");
  EXPECT_TRUE(generator.requests.empty());
  make({{"input", "hi"}});
  EXPECT_EQ(counted["input_tokens"], generator.requests[0].prompt.size());
}

TEST_F(ResponsesTest, TruncationCutsTheFrontAndKeepsTheInstructions) {
  model.context_length = 150;
  Json items = Json::array();
  for (int i = 0; i < 6; ++i)
    items.push_back({{"role", i % 2 ? "assistant" : "user"}, {"content", fmt::format("number {}", i)}});
  items.push_back({{"role", "user"}, {"content", "the last"}});
  Json body{{"input", items}, {"instructions", "be brief"}};
  EXPECT_EQ(refusal_of(post(kPath, body)), "400 messages context_length_exceeded");
  body["truncation"] = "auto";
  make(body);
  const std::string prompt = prompt_text();
  EXPECT_NE(prompt.find("be brief"), std::string::npos);
  EXPECT_NE(prompt.find("the last"), std::string::npos);
  EXPECT_EQ(prompt.find("number 0"), std::string::npos);
}

}  // namespace
}  // namespace godwit::serve
