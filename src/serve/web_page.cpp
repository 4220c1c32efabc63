// GET /, GET /assets/{name}: the web page. Public, from values in the program, never behind the engine.
#include <algorithm>

#include "serve/endpoints.h"
#include "serve/request_error.h"
#include "serve/web_assets.h"

namespace godwit::serve {
namespace {

// What an answer of a model must not be able to do even if it got past the page's sanitiser: run code, load
// or send anything elsewhere, style what it does not own, be framed by another page.
constexpr std::string_view kPolicy =
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "media-src 'self' data: blob:; connect-src 'self'; object-src 'none'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types dompurify";

const WebAsset* find_asset(std::string_view name) {
  const auto assets = web_assets();
  const auto found = std::ranges::find(assets, name, &WebAsset::name);
  return found == assets.end() ? nullptr : &*found;
}

// A list of entity tags, or *. Ours are strong; one that a proxy made weak, W/"…", is the same for a GET.
bool has_tag(std::string_view tags, std::string_view tag) {
  return tags == "*" || tags.find(tag) != std::string_view::npos;
}

Response answer(const Request& request, const WebAsset& asset, std::string_view caching) {
  Response response;
  response.headers.add("ETag", std::string(asset.tag));
  response.headers.add("Cache-Control", std::string(caching));
  response.headers.add("X-Content-Type-Options", "nosniff");
  if (const auto tags = request.headers.find("If-None-Match"); tags && has_tag(*tags, asset.tag)) {
    response.status = 304;
    return response;
  }
  response.headers.add("Content-Type", std::string(asset.type));
  response.body = asset.bytes;
  return response;
}

// Browsers ask for HTML by name; programs that only look whether somebody is there do not.
bool asks_for_html(const Request& request) {
  return request.headers.find("Accept").value_or("").find("text/html") != std::string_view::npos;
}

Response greeting(std::string_view text) {
  Response response{.body = std::string(text)};
  response.headers.add("Content-Type", "text/plain; charset=utf-8");
  response.headers.add("Vary", "Accept");
  return response;
}

}  // namespace

Response web_index(const Request& request, Context&) {
  // The words that clients of Ollama's API compare with; who it is says GET /version.
  if (!asks_for_html(request)) return greeting("Ollama is running");
  const WebAsset* index = find_asset("index.html");
  if (index == nullptr)
    return greeting(
        "Godwit is running. This program was built without its web page; ./dev build makes one with it.\n");
  Response response = answer(request, *index, "no-cache");
  response.headers.add("Vary", "Accept");
  response.headers.add("Content-Security-Policy", std::string(kPolicy));
  response.headers.add("Referrer-Policy", "no-referrer");
  response.headers.add("Cross-Origin-Resource-Policy", "same-origin");
  return response;
}

// The name of an asset holds a hash of its content, so whoever has it never asks again.
Response web_asset(const Request& request, Context&) {
  const WebAsset* asset = find_asset(std::string_view(request.path).substr(1));
  if (asset == nullptr)
    throw RequestError(ErrorCode::not_found, fmt::format("the web page has no file {}", request.path),
                       {.code = "not_found"});
  return answer(request, *asset, "public, max-age=31536000, immutable");
}

}  // namespace godwit::serve
