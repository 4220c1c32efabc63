#include "serve/dispatch.h"

#include "serve/dialect.h"
#include "serve/routes.h"
#include "support/serve_fixture.h"

namespace godwit::serve {
namespace {

using decode::FinishReason;

struct DispatchTest : ServeFixture {
  Response ask(std::string method, std::string target, std::string body = "",
               std::vector<std::pair<std::string, std::string>> headers = {{"Host", "localhost:8080"}}) {
    request = Request{.method = std::move(method), .target = std::move(target), .body = std::move(body)};
    for (auto& [name, value] : headers) request.headers.add(name, value);
    if (on_wait) request.check_alive = on_wait;
    return dispatch(request, context);
  }
  Response chat(const std::string& fields, const std::string& path = "/v1/chat/completions") {
    return ask("POST", path, R"({"messages":[{"role":"user","content":"hi"}])" + fields + "}");
  }
  static Json json(const Response& response) { return Json::parse(response.body); }
  static std::string code(const Response& response) { return json(response)["error"]["code"]; }
  static std::string header(const Response& response, std::string_view name) {
    return std::string(response.headers.find(name).value_or(""));
  }
  Request request;
  std::function<void()> on_wait;
};

TEST_F(DispatchTest, EveryPostRouteRefusesBodiesThatAreNoObjectInTheErrorShape) {
  for (const Route& route : routes()) {
    if (route.method != "POST" || route.is_admin) continue;
    for (const auto* body : {"{", "[]", "\"x\"", "", "\xff"}) {
      const Response response = ask("POST", "/v1" + std::string(route.path), body);
      EXPECT_EQ(response.status, 400) << route.path << " " << body;
      const Json error = json(response)["error"];
      switch (dialect_of(route.path)) {
        case Dialect::anthropic:
          EXPECT_EQ(json(response)["type"], "error");
          EXPECT_EQ(error["type"], "invalid_request_error");
          continue;
        case Dialect::ollama:
          EXPECT_TRUE(error.is_string());
          continue;
        case Dialect::openai:
          break;
      }
      EXPECT_EQ(error.size(), 4u);
      EXPECT_EQ(error["type"], "invalid_request_error");
      EXPECT_TRUE(error["message"].is_string());
      EXPECT_TRUE(error["param"].is_null());
      EXPECT_EQ(error["code"], "invalid_json");
    }
  }
}

TEST_F(DispatchTest, PathsAnswerWithAndWithoutV1SlashAndQuery) {
  for (const auto* path : {"/v1/models", "/models", "/v1/models/", "/models?x=1", "/v1/models/?x=/y"})
    EXPECT_EQ(ask("GET", path).status, 200) << path;
  for (const auto* path : {"/v1/models/org/tiny", "/models/org%2Ftiny", "/v1/models/tiny?a=b"})
    EXPECT_EQ(json(ask("GET", path))["object"], "model") << path;
  EXPECT_EQ(code(ask("GET", "/v1/models/nope")), "model_not_found");
  for (const auto* path : {"/v1", "/v1/nothing", "/v1/modelsx", "*"})
    EXPECT_EQ(ask("GET", path).status, 404) << path;
  EXPECT_EQ(json(ask("GET", "/v1/nothing?q=1"))["error"]["message"], "there is nothing at /v1/nothing");
  for (const auto* path : {"/health", "/v1/health", "/livez", "/readyz"})
    EXPECT_EQ(ask("HEAD", path).status, 200) << path;
}

TEST_F(DispatchTest, AWrongMethodIsToldWhatIsAllowed) {
  const Response get = ask("GET", "/v1/chat/completions");
  EXPECT_EQ(get.status, 405);
  EXPECT_EQ(header(get, "Allow"), "POST, OPTIONS");
  EXPECT_EQ(json(get)["error"]["message"], "/v1/chat/completions does not answer GET; it answers POST");
  EXPECT_EQ(header(ask("DELETE", "/v1/models"), "allow"), "GET, HEAD, OPTIONS");
}

TEST_F(DispatchTest, AWholeChatAnswerHasTheDocumentedShape) {
  generator.scripts = {spelled("ok", FinishReason::stop)};
  const Json answer = json(chat(R"(,"logprobs":true,"top_logprobs":2)"));
  EXPECT_EQ(answer["object"], "chat.completion");
  EXPECT_TRUE(answer["id"].get<std::string>().starts_with("chatcmpl-"));
  EXPECT_EQ(answer["created"], 1234);
  EXPECT_EQ(answer["model"], "org/tiny");
  EXPECT_EQ(answer["system_fingerprint"], "fp_0");
  const Json& choice = answer["choices"][0];
  EXPECT_EQ(choice["message"],
            Json::parse(R"({"role":"assistant","content":"ok","refusal":null,"annotations":[]})"));
  EXPECT_EQ(choice["finish_reason"], "stop");
  ASSERT_EQ(choice["logprobs"]["content"].size(), 2u);
  EXPECT_EQ(choice["logprobs"]["content"][1]["top_logprobs"].size(), 2u);
  EXPECT_EQ(answer["usage"]["completion_tokens"], 2);
  EXPECT_EQ(answer["usage"]["prompt_tokens_details"]["cached_tokens"], 2);
}

TEST_F(DispatchTest, AStreamHasRoleThenContentThenFinishThenUsageThenDone) {
  generator.scripts = {spelled("ok", FinishReason::length), spelled("no", FinishReason::stop)};
  Collector sink;
  chat(R"(,"n":2,"stream":true,"stream_options":{"include_usage":true})").events(sink);
  ASSERT_EQ(sink.events.size(), 2 * 4 + 2u);
  EXPECT_EQ(sink.events.back(), "[DONE]");
  std::string text[2];
  for (std::size_t i = 0; i + 2 < sink.events.size(); ++i) {
    const Json chunk = sink.json(i);
    EXPECT_EQ(chunk["object"], "chat.completion.chunk");
    EXPECT_EQ(chunk["id"], sink.json(0)["id"]);
    EXPECT_TRUE(chunk.contains("usage") && chunk["usage"].is_null());
    const Json& choice = chunk["choices"][0];
    if (choice["delta"].contains("content")) text[choice["index"].get<int>()] += choice["delta"]["content"];
  }
  EXPECT_EQ(sink.json(0)["choices"][0]["delta"], Json::parse(R"({"role":"assistant","content":""})"));
  EXPECT_EQ(text[0] + "|" + text[1], "ok|no");
  EXPECT_EQ(sink.json(3)["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(sink.json(3)["choices"][0]["delta"], Json::object());
  const Json usage = sink.json(8);
  EXPECT_EQ(usage["choices"], Json::array());
  EXPECT_EQ(usage["usage"]["completion_tokens"], 4);
  const auto prompt = static_cast<int>(generator.requests[0].prompt.size());
  EXPECT_EQ(usage["usage"]["prompt_tokens"], prompt) << "a prompt counts once, whatever n";
  EXPECT_EQ(usage["usage"]["prompt_tokens_details"]["cached_tokens"], 2);
}

TEST_F(DispatchTest, UsageIsOnlyStreamedWhenAskedFor) {
  for (const auto* options :
       {"", R"(,"stream_options":{"include_usage":false})", R"(,"stream_options":null)"}) {
    generator.scripts = {spelled("ok", FinishReason::stop)};
    Collector sink;
    chat(std::string(R"(,"stream":true)") + options).events(sink);
    for (std::size_t i = 0; i + 1 < sink.events.size(); ++i) {
      EXPECT_FALSE(sink.json(i).contains("usage"));
      EXPECT_EQ(sink.json(i)["choices"].size(), 1u);
    }
  }
}

TEST_F(DispatchTest, AnEndTokenIsCountedAndLeavesNoText) {
  decode::TokenEvent end;
  end.finish = FinishReason::stop;
  generator.scripts = {{end}};
  const Json answer = json(chat(""));
  EXPECT_EQ(answer["choices"][0]["message"]["content"], "");
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(answer["usage"]["completion_tokens"], 1);
}

TEST_F(DispatchTest, AFailureInTheMiddleIsAnErrorEventWithoutDone) {
  generator.scripts = {spelled("ok", FinishReason::none)};
  generator.breaks = true;
  Collector sink;
  chat(R"(,"stream":true)").events(sink);
  ASSERT_EQ(sink.events.size(), 4u);
  EXPECT_EQ(sink.json(3)["error"]["type"], "server_error");
  generator.scripts = {spelled("ok", FinishReason::none)};
  const Response whole = chat("");
  EXPECT_EQ(whole.status, 500);
  EXPECT_EQ(header(whole, "x-should-retry"), "false");
}

TEST_F(DispatchTest, APeerThatLeavesCancelsItsRow) {
  generator.scripts = {spelled("ok", FinishReason::none)};
  Collector sink(/*patience=*/1);
  {
    const Response response = chat(R"(,"stream":true)");
    EXPECT_THROW(response.events(sink), Error);
  }
  EXPECT_EQ(generator.cancelled, 1);
  // The same while nothing is streamed: the endless script only ends because the peer is looked after.
  generator.scripts = {spelled("ok", FinishReason::none)};
  int looks = 0;
  on_wait = [&] {
    if (++looks == 5) fail(ErrorCode::cancelled, "http", "the client went away");
  };
  EXPECT_EQ(chat("").status, 499);
  EXPECT_EQ(generator.cancelled, 2);
}

TEST_F(DispatchTest, AFullQueueIsATryAgainAndLaterChoicesWaitTheirTurn) {
  generator.refusals = 1;
  const Response full = chat("");
  EXPECT_EQ(full.status, 429);
  EXPECT_EQ(header(full, "Retry-After"), "1");
  EXPECT_EQ(code(full), "queue_full");
  generator.scripts = {spelled("a", FinishReason::stop), spelled("b", FinishReason::stop)};
  bool was_full = false;
  on_wait = [&] {
    if (!std::exchange(was_full, true))
      generator.refusals = 1;  // the queue fills while the first choice runs
  };
  const Response both = chat(",\"n\":2");
  EXPECT_EQ(both.status, 200);
  EXPECT_EQ(json(both)["choices"][1]["message"]["content"], "b");
}

TEST_F(DispatchTest, CompletionsEchoThePromptWithItsLogprobs) {
  const Json answer =
      json(ask("POST", "/v1/completions", R"({"prompt":"hé!","max_tokens":0,"echo":true,"logprobs":1})"));
  EXPECT_EQ(answer["object"], "text_completion");
  const Json& choice = answer["choices"][0];
  EXPECT_EQ(choice["text"], "hé!");
  EXPECT_EQ(choice["finish_reason"], "length");
  const Json& logprobs = choice["logprobs"];
  EXPECT_EQ(logprobs["tokens"], Json::array({"h", "bytes:\\xc3", "bytes:\\xa9", "!"}));
  EXPECT_EQ(logprobs["text_offset"], Json::array({0, 1, 1, 2}));
  EXPECT_TRUE(logprobs["token_logprobs"][0].is_null());
  EXPECT_EQ(answer["usage"]["completion_tokens"], 0);
  EXPECT_TRUE(generator.requests.empty()) << "nothing was generated";
}

TEST_F(DispatchTest, ABatchOfPromptsNumbersItsChoicesPromptByPrompt) {
  generator.scripts = {spelled("a", FinishReason::stop), spelled("b", FinishReason::stop),
                       spelled("c", FinishReason::stop), spelled("d", FinishReason::stop)};
  const Json answer =
      json(ask("POST", "/completions", R"({"prompt":["x","yz"],"n":2,"echo":true,"logprobs":0})"));
  std::string texts;
  for (const Json& choice : answer["choices"])
    texts += fmt::format("{}{} ", choice["index"].get<int>(), choice["text"].get<std::string>());
  EXPECT_EQ(texts, "0xa 1xb 2yzc 3yzd ");
  EXPECT_EQ(answer["choices"][3]["logprobs"]["text_offset"], Json::array({0, 1, 2}));
  EXPECT_EQ(answer["usage"]["prompt_tokens"], 3);
}

TEST_F(DispatchTest, AStreamedCompletionJoinsToTheWholeOne) {
  const std::string body = R"({"prompt":"x","echo":true,"logprobs":2)";
  generator.scripts = {spelled("abc", FinishReason::stop), spelled("abc", FinishReason::stop)};
  const Json whole = json(ask("POST", "/completions", body + "}"))["choices"][0];
  Collector sink;
  ask("POST", "/completions", body + R"(,"stream":true})").events(sink);
  std::string text;
  Json logprobs = Json::object();
  for (std::size_t i = 0; i + 1 < sink.events.size(); ++i) {
    const Json choice = sink.json(i)["choices"][0];
    text += choice["text"];
    if (choice["logprobs"].is_null()) continue;
    for (const auto& [key, values] : choice["logprobs"].items())
      for (const Json& value : values) logprobs[key].push_back(value);
  }
  EXPECT_EQ(text, whole["text"]);
  EXPECT_EQ(logprobs, whole["logprobs"]);
  EXPECT_EQ(sink.json(sink.events.size() - 2)["choices"][0]["finish_reason"], "stop");
}

TEST_F(DispatchTest, ContextOverflowIsABadRequestBeforeAnythingIsStreamed) {
  model.context_length = 3;
  const Response response = chat(R"(,"stream":true)");
  EXPECT_EQ(response.status, 400);
  EXPECT_FALSE(response.events);
  EXPECT_EQ(code(response), "context_length_exceeded");
  EXPECT_EQ(json(response)["error"]["n_ctx"], 3);
}

TEST_F(DispatchTest, ModelsWithoutATemplateOrTokenizerSaySo) {
  model.chat_template = nullptr;
  EXPECT_EQ(chat("").status, 400);
  EXPECT_NE(json(chat(""))["error"]["message"].get<std::string>().find("chat template"), std::string::npos);
  model.tokenizer = nullptr;
  EXPECT_EQ(ask("POST", "/completions", R"({"prompt":[1]})").status, 400);
}

TEST_F(DispatchTest, RequestIdsAreTakenOverWhenTheyAreHarmless) {
  const auto id_for = [&](std::string given) {
    return header(ask("GET", "/health", "", {{"Host", "localhost"}, {"X-Request-Id", given}}),
                  "x-request-id");
  };
  EXPECT_EQ(id_for("abc-1"), "abc-1");
  EXPECT_TRUE(id_for("a b").starts_with("req_"));
  EXPECT_TRUE(id_for(std::string(129, 'a')).starts_with("req_"));
  EXPECT_NE(header(ask("GET", "/health"), "x-request-id"), header(ask("GET", "/health"), "x-request-id"));
}

TEST_F(DispatchTest, OtherHostsAndOriginsAreKeptOut) {
  const auto status = [&](std::string method, std::vector<std::pair<std::string, std::string>> headers) {
    return ask(method, method == "GET" ? "/v1/models" : "/v1/completions", "{", headers);
  };
  EXPECT_EQ(status("GET", {{"Host", "evil.example"}}).status, 403);
  EXPECT_EQ(status("GET", {{"Host", "127.evil.example"}}).status, 403);
  EXPECT_EQ(status("GET", {}).status, 400);
  for (const auto* host :
       {"localhost", "LOCALHOST:1", "127.0.0.1:8080", "127.9.9.9", "[::1]:80", "app.localhost"})
    EXPECT_EQ(status("GET", {{"Host", host}}).status, 200) << host;
  const Response evil = status("POST", {{"Host", "localhost"}, {"Origin", "https://evil.example"}});
  EXPECT_EQ(evil.status, 403);
  EXPECT_EQ(header(evil, "Access-Control-Allow-Origin"), "");
  const Response page = status("POST", {{"Host", "localhost"}, {"Origin", "http://localhost:3000"}});
  EXPECT_EQ(page.status, 400) << "the body is looked at";
  EXPECT_EQ(header(page, "Access-Control-Allow-Origin"), "http://localhost:3000");
  context.access.origins = {"https://evil.example"};
  EXPECT_EQ(status("POST", {{"Host", "localhost"}, {"Origin", "https://evil.example"}}).status, 400);
  context.access = AccessRules();
  context.access.is_loopback = false;
  EXPECT_EQ(status("GET", {{"Host", "evil.example"}}).status, 200);
}

TEST_F(DispatchTest, APreflightIsGrantedToLocalPagesOnly) {
  const auto preflight = [&](std::string origin) {
    return ask("OPTIONS", "/v1/chat/completions", "",
               {{"Host", "localhost"}, {"Origin", origin}, {"Access-Control-Request-Headers", "x-a, x-b"}});
  };
  const Response local = preflight("http://127.0.0.1:5173");
  EXPECT_EQ(local.status, 204);
  EXPECT_EQ(header(local, "Access-Control-Allow-Headers"), "x-a, x-b");
  EXPECT_EQ(header(local, "Vary"), "Origin");
  EXPECT_EQ(header(preflight("https://evil.example"), "Access-Control-Allow-Methods"), "");
}

TEST_F(DispatchTest, AKeyMayComeInThreeHeadersAndIsNeededEverywhereButOnHealth) {
  context.access.add_key("sk-abcd");
  const auto status = [&](std::string name, std::string value) {
    return ask("GET", "/v1/models", "", {{"Host", "localhost"}, {name, value}}).status;
  };
  EXPECT_EQ(ask("GET", "/v1/models").status, 401);
  EXPECT_EQ(chat("").status, 401);
  EXPECT_EQ(header(ask("GET", "/v1/models"), "WWW-Authenticate"), "Bearer");
  EXPECT_EQ(ask("GET", "/health").status, 200);
  EXPECT_EQ(status("Authorization", "Bearer sk-abcd"), 200);
  EXPECT_EQ(status("Authorization", "bearer sk-abcd"), 200);
  EXPECT_EQ(status("x-api-key", "sk-abcd"), 200);
  EXPECT_EQ(status("api-key", "sk-abcd"), 200);
  EXPECT_EQ(status("Authorization", "Bearer sk-abce"), 401) << "one byte differs";
  EXPECT_EQ(status("Authorization", "sk-abcd"), 401);
}

TEST_F(DispatchTest, EveryRouteThatIsNotPublicNeedsTheKey) {
  context.access.add_key("sk-abcd");
  for (const Route& route : routes()) {
    const std::string path = "/v1" + std::string(route.path) + (route.path.ends_with('/') ? "x" : "");
    EXPECT_EQ(ask(std::string(route.method), path, "{}").status == 401, !route.is_public) << path;
  }
}

TEST_F(DispatchTest, AdministrationIsForHoldersOfAKeyOrThisMachine) {
  int drains = 0;
  context.server.hooks.drain = [&drains] { ++drains; };
  EXPECT_EQ(code(ask("POST", "/admin/drain")), "admin_not_allowed") << "an address that is not known is not ours";
  const auto local = [&](std::vector<std::pair<std::string, std::string>> headers) {
    request = Request{.method = "POST", .target = "/admin/drain", .client = {"127.0.0.1", true}};
    for (auto& [name, value] : headers) request.headers.add(name, value);
    return dispatch(request, context).status;
  };
  EXPECT_EQ(local({{"Host", "localhost"}}), 202);
  EXPECT_EQ(local({{"Host", "localhost"}, {"Origin", "https://evil.example"}}), 403);
  context.access.add_key("sk-abcd");
  EXPECT_EQ(local({{"Host", "localhost"}}), 401);
  EXPECT_EQ(ask("POST", "/admin/drain", "", {{"Host", "localhost"}, {"api-key", "sk-abcd"}}).status, 202);
  EXPECT_EQ(drains, 2);
}

TEST_F(DispatchTest, WhatTheTransportRefusesIsToldInTheWordsOfThePath) {
  const auto refused = [&](std::string target) {
    request = Request{.method = "POST", .target = std::move(target), .refusal = TransportRefusal{413, "body_too_large", "big"}};
    return dispatch(request, context);
  };
  EXPECT_EQ(json(refused("/v1/completions"))["error"]["code"], "body_too_large");
  EXPECT_EQ(json(refused("/v1/messages?beta=true"))["error"]["type"], "request_too_large");
  EXPECT_EQ(json(refused("/api/chat")), Json::parse(R"({"error":"big"})"));
  EXPECT_EQ(refused("/api/chat").status, 413);
  EXPECT_TRUE(refused("/api/chat").close);
}

TEST_F(DispatchTest, WhatARequestDidIsKnownWhenItHasEnded) {
  std::vector<RequestRecord> ended;
  context.server.hooks.access_line = [&ended](const RequestRecord& record) { ended.push_back(record); };
  std::string kept;
  context.server.hooks.prompt_line = [&kept](const RequestRecord& record, std::string_view body) {
    kept = std::string(body) + "|" + record.answers.at(0);
  };
  generator.scripts = {spelled("ok", FinishReason::stop), spelled("abc", FinishReason::none)};
  chat("").ended(200);
  generator.breaks = true;
  {
    Response response = chat(R"(,"stream":true)", "/v1/chat/completions?key=secret");
    Collector sink;
    response.events(sink);
    EXPECT_EQ(ended.size(), 1u) << "not before the sender says so";
    response.events = nullptr;
    response.ended(200);
  }
  ask("GET", "/v1/nothing").ended(404);
  ASSERT_EQ(ended.size(), 3u);
  EXPECT_EQ(ended[0].route, "/chat/completions");
  EXPECT_EQ(ended[0].model, "org/tiny");
  EXPECT_EQ(ended[0].generated_tokens, 2);
  EXPECT_EQ(ended[0].finish, "stop");
  EXPECT_EQ(ended[0].cached_tokens, 2);
  EXPECT_GE(ended[0].first_token_seconds, 0);
  EXPECT_EQ(ended[1].generated_tokens, 3);
  EXPECT_EQ(ended[1].finish, "");
  EXPECT_EQ(ended[1].error, "internal");
  EXPECT_EQ(ended[1].path, "/v1/chat/completions");
  EXPECT_TRUE(ended[1].is_stream);
  EXPECT_EQ(ended[2].route, "");
  EXPECT_EQ(ended[2].error, "not_found");
  EXPECT_TRUE(kept.ends_with("|abc"));
  EXPECT_NE(context.server.metrics.text({}).find("godwit_row_failures_total{model=\"org/tiny\"} 1\n"), std::string::npos);
}

TEST_F(DispatchTest, ARequestThatTakesTooLongIsGivenUp) {
  context.server.request_seconds = 0;
  const Response response = chat("");
  EXPECT_EQ(response.status, 504);
  EXPECT_EQ(code(response), "timeout");
  EXPECT_EQ(json(ask("POST", "/v1/messages/x", "{}"))["error"]["type"], "not_found_error");
}

TEST_F(DispatchTest, AServerThatLoadsIsAliveAndNotReady) {
  context.server.loading = true;
  for (const auto* path : {"/health", "/v1/health", "/healthz"}) {
    const Response response = ask("GET", path);
    EXPECT_EQ(response.status, 503) << path;
    EXPECT_EQ(json(response)["error"], Json::parse(R"({"code":503,"message":"Loading model","type":"unavailable_error"})"));
  }
  EXPECT_EQ(ask("GET", "/readyz").status, 503);
  EXPECT_EQ(ask("GET", "/livez").status, 200);
  EXPECT_EQ(ask("GET", "/v1/models").status, 200);
}

TEST_F(DispatchTest, ADrainingServerTakesNoGenerationsButShowsItsHealth) {
  context.server.draining = true;
  std::vector<LogLevel> levels;
  context.log = Log([&levels](LogLevel level, std::string_view) { levels.push_back(level); });
  const Response refused = chat("");
  EXPECT_EQ(levels, std::vector{LogLevel::warning});
  EXPECT_EQ(refused.status, 503);
  EXPECT_TRUE(refused.close);
  EXPECT_EQ(code(refused), "draining");
  EXPECT_EQ(ask("GET", "/readyz").status, 503);
  EXPECT_EQ(ask("GET", "/health").status, 503);
  EXPECT_EQ(ask("GET", "/livez").status, 200);
}

// What arose where is for the log: clients read what went wrong.
TEST_F(DispatchTest, NoMessageToAClientShowsWhereItAroseInside) {
  const auto is_plain = [](const Response& response) {
    const std::string& text = response.body;
    for (const auto* tag : {"[engine]", "[serve]", "[json]", "[grammar]", "[request]", "[template]", "[sampling]"})
      if (text.find(tag) != std::string::npos) return false;
    return !text.empty();
  };
  for (const Route& route : routes()) {
    const std::string path = std::string(route.path) + (route.path.ends_with('/') ? "x" : "");
    for (const auto* sent : {"{", R"({"messages":[{"role":"user","content":"hi"}]})", R"({"messages":[{"role":"user","content":"hi"}],"max_tokens":4})",
                             R"({"prompt":"hi"})", R"({"input":"hi"})"}) {
      if (route.is_admin || route.method == "GET") continue;
      generator.refusals = 100;
      const Response response = ask(std::string(route.method), path, sent);
      EXPECT_TRUE(is_plain(response)) << path << " " << response.body;
      EXPECT_EQ(route.is_generation && response.status == 200, false) << path << " " << response.body;
    }
  }
  generator.refusals = 1;
  const Response full = chat("");
  EXPECT_EQ(full.status, 429);
  EXPECT_EQ(json(full)["error"]["message"], "the queue is full");
  generator.refusals = 0;
  generator.breaks = true;  // what is taken after all ends at once
  for (const auto* fields : {R"(,"sampler_order":"none")", R"(,"response_format":{"type":"json_schema","json_schema":{"schema":{"type":7}}})",
                             R"(,"guided_regex":"(")", R"(,"grammar":"root ::= (")"}) {
    const Response refused = chat(fields);
    EXPECT_EQ(refused.status, 400) << fields;
    EXPECT_TRUE(is_plain(refused)) << refused.body;
  }
  model.tokenizer = nullptr;
  EXPECT_TRUE(is_plain(chat("")));
}

TEST(PlainMessage, TagsOfOriginsAreTakenOffAndTextInBracketsStays) {
  EXPECT_EQ(plain_message("[engine] the queue is full"), "the queue is full");
  EXPECT_EQ(plain_message("[engine] [gguf_file] a"), "a");
  for (const auto* kept : {"[INST] a", "[] a", "[a]", "[a b] c", "a [engine] b", ""}) EXPECT_EQ(plain_message(kept), kept);
}

// llama.cpp's name for it; clients repeat other answers of 500 and above.
TEST_F(DispatchTest, WhatNoModelHereCanDoIsNoFaultOfTheServer) {
  const Response refused = ask("POST", "/rerank", "{}");
  EXPECT_EQ(refused.status, 501);
  EXPECT_EQ(json(refused)["error"]["type"], "not_supported_error");
  EXPECT_EQ(header(refused, "x-should-retry"), "false");
  EXPECT_EQ(error_json({.status = 501, .message = "m", .fields = {}}, Dialect::anthropic, "r")["error"]["type"], "invalid_request_error");
  EXPECT_EQ(error_json({.status = 501, .message = "m", .fields = {}}, Dialect::ollama, "r"), Json({{"error", "m"}}));
}

TEST_F(DispatchTest, ComputedPromptsAreForgottenWhenThatIsAskedFor) {
  const auto flush = [&](std::string body) {
    request = Request{.method = "POST", .target = "/v1/admin/cache/flush", .body = std::move(body), .client = {"127.0.0.1", true}};
    request.headers.add("Host", "localhost");
    return dispatch(request, context);
  };
  EXPECT_EQ(json(flush("")), Json::parse(R"({"flushed":[]})")) << "there is no cache";
  generator.kept_bytes = 100;
  EXPECT_EQ(json(flush("{}")), Json::parse(R"({"flushed":[{"model":"org/tiny","bytes":100}]})"));
  EXPECT_EQ(json(flush(R"({"model":"tiny"})"))["flushed"][0]["bytes"], 0);
  EXPECT_EQ(flush(R"({"model":"other"})").status, 404);
  EXPECT_EQ(ask("POST", "/admin/cache/flush").status, 403);
}

}  // namespace
}  // namespace godwit::serve
