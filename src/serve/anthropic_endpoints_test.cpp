// Anthropic's API through dispatch().
#include "serve/dispatch.h"
#include "support/serve_fixture.h"

namespace godwit::serve {
namespace {

using decode::FinishReason;

struct AnthropicEndpointsTest : ServeFixture {
  Response ask(const std::string& path, const std::string& fields) {
    request = {.method = "POST",
               .target = path,
               .body = R"({"model":"tiny","messages":[{"role":"user","content":"hi"}])" + fields + "}"};
    request.headers.add("Host", "localhost");
    return dispatch(request, context);
  }
  Json message(const std::string& fields) { return Json::parse(ask("/v1/messages?beta=true", fields).body); }

  Request request;
};

TEST_F(AnthropicEndpointsTest, AWholeMessageIsItsStreamAddedUp) {
  for (const auto finish : {FinishReason::stop, FinishReason::length}) {
    generator.scripts = {spelled("ok", finish), spelled("ok", finish)};
    const Json whole = message(R"(,"max_tokens":2)");
    EXPECT_EQ(whole["content"], Json::parse(R"([{"type":"text","text":"ok"}])"));
    EXPECT_EQ(whole["stop_reason"], finish == FinishReason::stop ? "end_turn" : "max_tokens");
    EXPECT_EQ(whole["model"], "org/tiny");
    const Response response = ask("/v1/messages", R"(,"max_tokens":2,"stream":true)");
    Collector sink;
    response.events(sink);
    const std::vector<std::string> want = {"message_start",       "ping",
                                           "content_block_start", "content_block_delta",
                                           "content_block_delta", "content_block_stop",
                                           "message_delta",       "message_stop"};
    EXPECT_EQ(sink.names, want);
    for (std::size_t i = 0; i < sink.names.size(); ++i) EXPECT_EQ(sink.json(i)["type"], sink.names[i]);
    EXPECT_EQ(sink.json(6)["delta"]["stop_reason"], whole["stop_reason"]);
    EXPECT_EQ(sink.json(6)["usage"], whole["usage"]);
    EXPECT_EQ(sink.keep_alive(), "event: ping\ndata: {\"type\":\"ping\"}\n\n");
    const Json start = sink.json(0)["message"]["usage"];
    EXPECT_EQ(start["cache_read_input_tokens"], 2);
    EXPECT_EQ(start["input_tokens"], whole["usage"]["input_tokens"]);
  }
}

TEST_F(AnthropicEndpointsTest, CountingGivesTheTokensOfTheMessage) {
  generator.scripts = {spelled("ok", FinishReason::stop)};
  const Json usage = message(R"(,"system":"S","max_tokens":5)")["usage"];
  const Json counted = Json::parse(ask("/v1/messages/count_tokens", R"(,"system":"S")").body);
  EXPECT_EQ(counted, Json({{"input_tokens", usage["input_tokens"].get<int>() + usage["cache_read_input_tokens"].get<int>()}}));
}

TEST_F(AnthropicEndpointsTest, AStopSequenceIsNamed) {
  generator.scripts = {spelled("ok", FinishReason::stop)};
  generator.scripts[0].back().stop_match = "END";
  const Json whole = message(R"(,"stop_sequences":["END"])");
  EXPECT_EQ(whole["stop_reason"], "stop_sequence");
  EXPECT_EQ(whole["stop_sequence"], "END");
}

TEST_F(AnthropicEndpointsTest, AFullContextIsNotTheLimitThatWasAskedFor) {
  generator.scripts = {spelled("ok", FinishReason::length)};
  EXPECT_EQ(message(R"(,"max_tokens":50)")["stop_reason"], "model_context_window_exceeded");
}

TEST_F(AnthropicEndpointsTest, NoTokensFillTheCacheAndAnswerNothing) {
  generator.scripts = {spelled("o", FinishReason::length)};
  const Json whole = message(R"(,"max_tokens":0)");
  EXPECT_EQ(whole["content"], Json::array());
  EXPECT_EQ(whole["stop_reason"], "max_tokens");
  EXPECT_EQ(whole["usage"]["output_tokens"], 0);
  EXPECT_EQ(generator.requests.at(0).max_tokens, 1);
}

TEST_F(AnthropicEndpointsTest, ErrorsHaveTheirShapeAndLateOnesAreEvents) {
  const Response refused = ask("/v1/messages", R"(,"model":"nope")");
  EXPECT_EQ(refused.status, 404);
  const Json error = Json::parse(refused.body);
  EXPECT_EQ(error["type"], "error");
  EXPECT_EQ(error["error"]["type"], "not_found_error");
  EXPECT_EQ(error["request_id"], request.id);
  EXPECT_EQ(refused.headers.find("request-id"), request.id);

  generator.scripts = {spelled("o", FinishReason::none)};
  generator.breaks = true;
  Collector sink;
  ask("/v1/messages", R"(,"stream":true)").events(sink);
  EXPECT_EQ(sink.names.back(), "error");
  EXPECT_EQ(sink.json(sink.events.size() - 1)["error"]["type"], "api_error");
}

TEST_F(AnthropicEndpointsTest, ModelsHaveTheirShapeForItsClients) {
  request = {.method = "GET", .target = "/v1/models?limit=20"};
  request.headers.add("Host", "localhost");
  request.headers.add("anthropic-version", "2023-06-01");
  const Json list = Json::parse(dispatch(request, context).body);
  EXPECT_EQ(list["data"][0], Json::parse(R"({"type":"model","id":"org/tiny","display_name":"org/tiny",
                                             "created_at":"1970-01-01T00:00:00Z"})"));
  EXPECT_EQ(list["last_id"], "tiny");
  EXPECT_EQ(list["has_more"], false);
  request.target = "/v1/models/tiny";
  EXPECT_EQ(Json::parse(dispatch(request, context).body)["type"], "model");
}

}  // namespace
}  // namespace godwit::serve
