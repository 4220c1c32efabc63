// HTTP(S) GET over libcurl, blocking, one client per thread. This file and its .cpp are the only ones that
// know libcurl.
//
// What it adds to the library: the bearer token goes to the origin (scheme, host, port) of the first URL and
// to no other, a redirect from https to http is refused, a transfer that stands still ends after `stall`, and
// `stop` is asked every 100 ms. Proxies come from the variables libcurl itself documents (https_proxy,
// no_proxy, ...).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/error.h"

namespace godwit::hub {

// libcurl's process-wide set-up. The program calls it once before it starts threads.
void initialise_http();

// The transfer broke below HTTP. `retriable`: trying again may help (reset, timeout, stall), as opposed to a
// refused certificate or a malformed URL.
class TransferError : public Error {
 public:
  TransferError(std::string_view message, bool is_retriable)
      : Error(ErrorCode::network, "http", message), retriable(is_retriable) {}
  bool retriable;
};

struct HttpOptions {
  std::string user_agent = "godwit";
  std::string ca_file;  // empty: libcurl's default bundle
  std::chrono::seconds connect_timeout{15};
  std::chrono::seconds stall{
      30};  // without a byte from the peer; connecting counts, so keep it the longer one
};

struct HttpRequest {
  std::string url;
  std::string bearer_token;
  std::uint64_t range_from = 0;  // > 0 sends "Range: bytes=N-"
};

struct HttpHead {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case; the last one of a name wins
  std::optional<std::string> header(const std::string& name) const;
};

// Receives body pieces of the final answer (redirects are swallowed). What it throws ends the transfer and
// comes out of get().
using BodySink = std::function<void(const HttpHead& head, std::span<const std::byte> piece)>;
using StopCheck = std::function<bool()>;  // called from any thread; true asks to stop

class HttpClient {
 public:
  HttpClient(HttpOptions options, StopCheck stop);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Any status is an answer, not an error. Throws TransferError, Error{cancelled}, or what the sink threw.
  HttpHead get(const HttpRequest& request, const BodySink& sink);

 private:
  struct Connection;
  HttpOptions options_;
  StopCheck stop_;
  std::unique_ptr<Connection> connection_;
};

// "https://host:port" with the default port made explicit. Throws Error{invalid_argument} for anything but
// http and https.
std::string origin_of(const std::string& url);

// "Sun, 06 Nov 1994 08:49:37 GMT" and the older spellings HTTP allows.
std::optional<std::time_t> parse_http_date(const std::string& text);

// Escapes everything but unreserved characters and, when asked, '/'.
std::string url_escape(std::string_view text, bool keep_slashes);

}  // namespace godwit::hub
