// Ollama's API through dispatch(), and the cutting of answers into lines.
#include "serve/dispatch.h"
#include "serve/ollama_json.h"
#include "serve/request_error.h"
#include "support/serve_fixture.h"

namespace godwit::serve {
namespace {

using decode::FinishReason;
using Kind = text::TurnPiece::Kind;

struct OllamaEndpointsTest : ServeFixture {
  Response ask(const std::string& method, const std::string& path, const std::string& body = "") {
    request = {.method = method, .target = path, .body = body};
    request.headers.add("Host", "localhost");
    return dispatch(request, context);
  }
  std::vector<Json> lines(const Response& response) {
    Collector sink;
    response.events(sink);
    std::vector<Json> out;
    for (std::size_t i = 0; i < sink.events.size(); ++i) out.push_back(sink.json(i));
    return out;
  }
  Request request;
};

constexpr auto kChat = R"({"model":"tiny:latest","messages":[{"role":"user","content":"hi"}])";

TEST_F(OllamaEndpointsTest, AChatStreamsLinesUnlessToldNotTo) {
  generator.scripts = {spelled("ok", FinishReason::stop), spelled("ok", FinishReason::length)};
  const Response stream = ask("POST", "/api/chat", std::string(kChat) + "}");
  EXPECT_EQ(stream.headers.find("Content-Type"), "application/x-ndjson");
  EXPECT_EQ(stream.framing, Framing::lines);
  const std::vector<Json> made = lines(stream);
  ASSERT_EQ(made.size(), 3u);
  EXPECT_EQ(made[0], Json::parse(R"({"model":"org/tiny","created_at":"1970-01-01T00:20:34Z",
                                     "message":{"role":"assistant","content":"o"},"done":false})"));
  EXPECT_EQ(made[1]["message"]["content"], "k");
  EXPECT_EQ(made[2]["done"], true);
  EXPECT_EQ(made[2]["done_reason"], "stop");
  EXPECT_EQ(made[2]["eval_count"], 2);
  for (const auto* time : {"total_duration", "load_duration", "prompt_eval_duration", "eval_duration"})
    EXPECT_TRUE(made[2][time].is_number_integer()) << time;
  const Json whole = Json::parse(ask("POST", "/api/chat", std::string(kChat) + R"(,"stream":false})").body);
  EXPECT_EQ(whole["message"]["content"], "ok");
  EXPECT_EQ(whole["done_reason"], "length");
  EXPECT_EQ(whole["prompt_eval_count"], made[2]["prompt_eval_count"]);
}

TEST_F(OllamaEndpointsTest, RawPromptsPassTheTemplate) {
  generator.scripts = {spelled("ok", FinishReason::stop)};
  const Json whole =
      Json::parse(ask("POST", "/api/generate", R"({"prompt":"xyz","raw":true,"stream":false})").body);
  EXPECT_EQ(whole["response"], "ok");
  EXPECT_EQ(generator.requests.at(0).prompt, (std::vector<int>{'x', 'y', 'z'}));
}

TEST_F(OllamaEndpointsTest, NoPromptLoadsTheModel) {
  const Json loaded = Json::parse(ask("POST", "/api/generate", R"({"stream":false})").body);
  EXPECT_EQ(loaded["done_reason"], "load");
  EXPECT_EQ(loaded["response"], "");
  EXPECT_TRUE(generator.requests.empty());
}

// A directory whose model is not loaded, and whose loads and unloads are counted.
class Shelf final : public ModelDirectory {
 public:
  explicit Shelf(ModelEntry entry) : entry_(std::move(entry)) {}
  std::shared_ptr<const LoadedModel> open(std::string_view, const std::function<void()>&) override {
    ++opened;
    throw RequestError(ErrorCode::internal, "loaded", {.status = 500});
  }
  std::vector<ModelEntry> list() const override { return {entry_}; }
  bool unload(std::string_view name) override {
    unloaded += name == entry_.id ? 1 : 0;
    return false;
  }
  int opened = 0, unloaded = 0;

 private:
  ModelEntry entry_;
};

TEST_F(OllamaEndpointsTest, AnEmptyRequestThatKeepsNothingUnloadsAndNeverLoads) {
  Shelf shelf({.id = "org/big", .aliases = {"big"}, .is_loaded = false});
  Context on_shelf(server, shelf, {}, {});
  const auto send = [&](std::string path, std::string body) {
    request = Request{.method = "POST", .target = std::move(path), .body = std::move(body)};
    request.headers.add("Host", "localhost");
    return dispatch(request, on_shelf);
  };
  const std::vector<Json> chat = lines(send("/api/chat", R"({"model":"big:latest","messages":[],"keep_alive":0})"));
  ASSERT_EQ(chat.size(), 1u);
  EXPECT_EQ(chat[0]["done_reason"], "unload");
  EXPECT_EQ(chat[0]["model"], "org/big");
  EXPECT_EQ(chat[0]["done"], true);
  const Json whole = Json::parse(send("/api/generate", R"({"model":"big","keep_alive":"0s","prompt":"","stream":false})").body);
  EXPECT_EQ(whole["done_reason"], "unload");
  EXPECT_EQ(whole["response"], "");
  EXPECT_EQ(shelf.opened, 0);
  EXPECT_EQ(shelf.unloaded, 2);
  EXPECT_EQ(send("/api/generate", R"({"model":"other","keep_alive":0})").status, 404);
  EXPECT_EQ(send("/api/generate", R"({"model":"big","keep_alive":0,"prompt":"a"})").status, 500);
  EXPECT_EQ(shelf.opened, 1);
}

TEST_F(OllamaEndpointsTest, ALongPromptIsRefusedNotCut) {
  const Response refused =
      ask("POST", "/api/generate", R"({"options":{"num_ctx":9999},"prompt":")" + std::string(600, 'x') + "\"}");
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(Json::parse(refused.body)["error"].get<std::string>().find("maximum context length"), std::string::npos);
}

TEST_F(OllamaEndpointsTest, ModelsAreListedAndShown) {
  const Json tags = Json::parse(ask("GET", "/api/tags").body);
  EXPECT_EQ(tags["models"][0]["name"], "org/tiny");
  EXPECT_EQ(Json::parse(ask("GET", "/api/ps").body)["models"][0]["context_length"], 512);
  const Json shown = Json::parse(ask("POST", "/api/show", R"({"model":"tiny"})").body);
  EXPECT_EQ(shown["template"], kChatMl);
  EXPECT_EQ(shown["capabilities"], Json::array({"completion"}));
  const std::string architecture = shown["model_info"]["general.architecture"];
  EXPECT_EQ(shown["model_info"][architecture + ".context_length"], 512);
  EXPECT_TRUE(Json::parse(ask("GET", "/api/version").body)["version"].is_string());
}

TEST_F(OllamaEndpointsTest, ErrorsAreOneText) {
  for (const auto& [method, path, status] : std::initializer_list<std::tuple<const char*, const char*, int>>{
           {"POST", "/api/pull", 501}, {"DELETE", "/api/delete", 501}, {"GET", "/api/nothing", 404}, {"GET", "/api/chat", 405}}) {
    const Response refused = ask(method, path, "{}");
    EXPECT_EQ(refused.status, status) << path;
    EXPECT_TRUE(Json::parse(refused.body)["error"].is_string());
  }
  EXPECT_EQ(ask("POST", "/api/show", R"({"model":"nope"})").status, 404);
  generator.scripts = {spelled("o", FinishReason::none)};
  generator.breaks = true;
  const std::vector<Json> made = lines(ask("POST", "/api/chat", std::string(kChat) + "}"));
  EXPECT_TRUE(made.back()["error"].is_string());
  EXPECT_FALSE(made.back().contains("done"));
}

TEST(OllamaParts, ACallComesWholeAndItsArgumentsAsAnObject) {
  OllamaParts parts;
  EXPECT_TRUE(parts.add({.pieces = {{.kind = Kind::call, .id = "c0", .name = "f"}, {.kind = Kind::arguments, .text = "{\"a\":"}}}).is_empty());
  const OllamaPart first = parts.add({.pieces = {{.kind = Kind::arguments, .text = "1}"}, {.kind = Kind::call, .call = 1, .id = "c1", .name = "g"}}});
  EXPECT_EQ(first.calls, Json::parse(R"([{"id":"c0","function":{"index":0,"name":"f","arguments":{"a":1}}}])"));
  const OllamaPart last = parts.add({.pieces = {{.kind = Kind::reasoning, .text = "t"}}, .finish = ChatFinish::tool_calls});
  EXPECT_EQ(last.calls[0]["function"], Json::parse(R"({"index":1,"name":"g","arguments":{}})"));
  EXPECT_EQ(last.thinking, "t");
}

}  // namespace
}  // namespace godwit::serve
