// The page as dispatch() hands it out. A build without Node.js has none, and says so: both are looked at
// where they are.
#include <algorithm>

#include "serve/dispatch.h"
#include "serve/web_assets.h"
#include "support/serve_fixture.h"

namespace godwit::serve {
namespace {

struct WebPageTest : ServeFixture {
  Response ask(std::string target, std::vector<std::pair<std::string, std::string>> headers = {},
               std::string method = "GET") {
    request = Request{.method = std::move(method), .target = std::move(target)};
    request.headers.add("Host", "localhost:8080");
    for (auto& [name, value] : headers) request.headers.add(name, value);
    return dispatch(request, context);
  }
  static std::string header(const Response& response, std::string_view name) {
    return std::string(response.headers.find(name).value_or(""));
  }
  Request request;
};

const std::pair<std::string, std::string> kBrowser = {"Accept", "text/html,application/xhtml+xml,*/*;q=0.8"};

TEST_F(WebPageTest, ProgramsThatLookWhoIsThereGetALine) {
  for (const auto* target : {"/", "/?x=1"}) {
    const Response response = ask(target, {{"Accept", "*/*"}});
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, "Ollama is running");
    EXPECT_EQ(header(response, "Content-Type"), "text/plain; charset=utf-8");
    EXPECT_EQ(header(response, "Vary"), "Accept");
  }
  EXPECT_EQ(ask("/", {}, "HEAD").status, 200);
  EXPECT_EQ(ask("/", {}, "POST").status, 405);
}

TEST_F(WebPageTest, BrowsersGetThePageUnderAPolicyOrAreToldThatThereIsNone) {
  const Response response = ask("/", {kBrowser});
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(header(response, "Vary"), "Accept");
  if (web_assets().empty()) {
    EXPECT_NE(response.body.find("built without its web page"), std::string::npos);
    return;
  }
  EXPECT_EQ(header(response, "Content-Type"), "text/html; charset=utf-8");
  EXPECT_EQ(header(response, "Cache-Control"), "no-cache");
  EXPECT_EQ(response.body.find("http"), std::string::npos);  // nothing of another host
  const std::string policy = header(response, "Content-Security-Policy");
  for (const auto* rule : {"default-src 'self'", "connect-src 'self'", "object-src 'none'",
                           "frame-ancestors 'none'", "require-trusted-types-for 'script'"})
    EXPECT_NE(policy.find(rule), std::string::npos) << rule;
  EXPECT_EQ(policy.find("unsafe"), std::string::npos);
}

TEST_F(WebPageTest, AssetsAreKeptForGoodAndKnownByTheirTag) {
  for (const WebAsset& asset : web_assets()) {
    const bool is_index = asset.name == "index.html";
    const std::string target = is_index ? "/" : "/" + std::string(asset.name);
    const Response response = ask(target, {kBrowser});
    EXPECT_EQ(response.body, asset.bytes);
    EXPECT_EQ(header(response, "ETag"), asset.tag);
    EXPECT_EQ(header(response, "Cache-Control"),
              is_index ? "no-cache" : "public, max-age=31536000, immutable");
    for (const auto& tags :
         {std::string(asset.tag), "\"x\", W/" + std::string(asset.tag), std::string("*")}) {
      const Response known = ask(target, {kBrowser, {"If-None-Match", tags}});
      EXPECT_EQ(known.status, 304) << tags;
      EXPECT_TRUE(known.body.empty());
      EXPECT_EQ(header(known, "ETag"), asset.tag);
    }
    EXPECT_EQ(ask(target, {kBrowser, {"If-None-Match", "\"other\""}}).status, 200);
  }
  EXPECT_EQ(ask("/assets/none.js").status, 404);
  EXPECT_EQ(ask("/assets/../index.html").status, 404);
}

TEST_F(WebPageTest, ThePageIsPublicAndTheApiIsNot) {
  context.access.add_key("secret");
  EXPECT_EQ(ask("/", {kBrowser}).status, 200);
  EXPECT_NE(ask("/assets/none.js").status, 401);
  EXPECT_EQ(ask("/v1/models").status, 401);
}

}  // namespace
}  // namespace godwit::serve
