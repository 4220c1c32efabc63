// The order of Anthropic's events, held against a machine that knows it, and whole messages against streamed ones.
#include "serve/anthropic_events.h"

#include <gtest/gtest.h>

namespace godwit::serve {
namespace {

using Kind = text::TurnPiece::Kind;

// What a strict client checks. An empty string: all is well.
std::string first_fault(const std::vector<Json>& events) {
  int next_index = 0;
  bool has_started = false, is_open = false, has_delta = false, is_over = false;
  for (const Json& event : events) {
    const std::string type = event["type"];
    if (is_over) return type + " behind message_stop";
    if (type == "message_start") {
      if (std::exchange(has_started, true)) return "two message_start";
      if (!event["message"]["content"].empty() || !event["message"]["stop_reason"].is_null()) return "a message that is not empty";
      if (!event["message"]["usage"]["input_tokens"].is_number()) return "no input_tokens";
      continue;
    }
    if (!has_started) return type + " before message_start";
    if (type == "ping") continue;
    if (type == "content_block_start") {
      if (is_open || has_delta || event["index"] != next_index) return "a block out of order";
      is_open = true;
    } else if (type == "content_block_delta") {
      if (!is_open || event["index"] != next_index) return "a delta outside of its block";
    } else if (type == "content_block_stop") {
      if (!is_open || event["index"] != next_index) return "a stop outside of its block";
      is_open = false;
      ++next_index;
    } else if (type == "message_delta") {
      if (is_open || std::exchange(has_delta, true)) return "message_delta too early or twice";
      if (!event["delta"]["stop_reason"].is_string()) return "no stop_reason";
    } else if (type == "message_stop") {
      if (!has_delta) return "message_stop without message_delta";
      is_over = true;
    } else {
      return "an unknown event " + type;
    }
  }
  return is_over ? "" : "no message_stop";
}

struct AnthropicEventsTest : ::testing::Test {
  void make(const std::vector<text::TurnPiece>& pieces, const std::string& reason = "end_turn",
            const std::optional<std::string>& stop = std::nullopt) {
    AnthropicEvents maker([&](const Json& event) {
      events.push_back(event);
      message.add(event);
    });
    maker.start("msg_1", "tiny", {.prompt_tokens = 10, .completion_tokens = 1, .cached_tokens = 7});
    for (const auto& piece : pieces) maker.add(piece);
    maker.finish(reason, stop, {.prompt_tokens = 10, .completion_tokens = 5, .cached_tokens = 7});
  }
  std::string content() const { return dump_json(message.json()["content"]); }

  std::vector<Json> events;
  AnthropicMessage message;
};

TEST_F(AnthropicEventsTest, ThinkingTextAndTwoCallsAreBlocksInARow) {
  make({{.kind = Kind::reasoning, .text = "hm"},
        {.kind = Kind::reasoning, .text = "m"},
        {.kind = Kind::content, .text = "\n"},
        {.kind = Kind::content, .text = "I "},
        {.kind = Kind::content, .text = "look"},
        {.kind = Kind::call, .call = 0, .id = "call_a", .name = "find"},
        {.kind = Kind::arguments, .call = 0, .text = "{\"x\":"},
        {.kind = Kind::arguments, .call = 0, .text = " 1}"},
        {.kind = Kind::content, .text = "\n"},
        {.kind = Kind::call, .call = 1, .id = "call_b", .name = "now"}},
       "tool_use");
  EXPECT_EQ(first_fault(events), "");
  const Json& blocks = message.json()["content"];
  ASSERT_EQ(blocks.size(), 4u);
  EXPECT_EQ(blocks[0]["thinking"], "hmm");
  EXPECT_FALSE(blocks[0]["signature"].get<std::string>().empty());
  EXPECT_EQ(blocks[1], Json::parse(R"({"type":"text","text":"\nI look"})"));
  EXPECT_EQ(blocks[2], Json::parse(R"({"type":"tool_use","id":"call_a","name":"find","input":{"x":1}})"));
  EXPECT_EQ(blocks[3], Json::parse(R"({"type":"tool_use","id":"call_b","name":"now","input":{}})"));
  int empty_inputs = 0, signatures = 0, braces = 0;
  for (const Json& event : events) {
    if (event["type"] == "content_block_start") empty_inputs += event["content_block"].value("input", Json(nullptr)) == Json::object();
    if (event["type"] != "content_block_delta") continue;
    signatures += event["delta"]["type"] == "signature_delta";
    braces += event["delta"].value("partial_json", "") == "{}";
  }
  EXPECT_EQ(empty_inputs, 2) << "a call starts without its arguments";
  EXPECT_EQ(signatures, 1);
  EXPECT_EQ(braces, 1) << "a call without arguments sends JSON all the same";
  EXPECT_EQ(message.json()["stop_reason"], "tool_use");
}

TEST_F(AnthropicEventsTest, ACallAloneAndAnEmptyAnswerAreInOrderToo) {
  make({{.kind = Kind::call, .id = "c", .name = "f"}, {.kind = Kind::arguments, .text = "{}"}}, "tool_use");
  EXPECT_EQ(first_fault(events), "");
  EXPECT_EQ(content(), R"([{"type":"tool_use","id":"c","name":"f","input":{}}])");
  events.clear();
  make({});
  EXPECT_EQ(first_fault(events), "");
  EXPECT_EQ(content(), "[]");
}

TEST_F(AnthropicEventsTest, WhiteSpaceIsABlockOnlyWhereItIsTheAnswer) {
  make({{.kind = Kind::content, .text = "\n"}, {.kind = Kind::reasoning, .text = "a"}, {.kind = Kind::content, .text = " "}});
  EXPECT_EQ(first_fault(events), "");
  EXPECT_EQ(message.json()["content"].size(), 1u);
  events.clear();
  make({{.kind = Kind::content, .text = "\n"}, {.kind = Kind::content, .text = " "}});
  EXPECT_EQ(first_fault(events), "");
  EXPECT_EQ(content(), R"([{"type":"text","text":"\n "}])");
}

TEST_F(AnthropicEventsTest, UsageLeavesOutWhatTheCacheHad) {
  make({{.kind = Kind::content, .text = "a"}}, "stop_sequence", "END");
  EXPECT_EQ(message.json()["usage"], Json::parse(R"({"input_tokens":3,"cache_creation_input_tokens":0,
                                                      "cache_read_input_tokens":7,"output_tokens":5,
                                                      "output_tokens_details":{"thinking_tokens":0}})"));
  EXPECT_EQ(message.json()["stop_sequence"], "END");
  EXPECT_EQ(events[0]["message"]["usage"]["input_tokens"], 3);
}

}  // namespace
}  // namespace godwit::serve
