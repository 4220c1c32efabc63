#include "hub/http_client.h"

#include <curl/curl.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <exception>

namespace godwit::hub {
namespace {

constexpr int kMaxRedirects = 10;
constexpr long kReceiveBuffer = 256 * 1024;

struct Exchange {
  HttpHead head;
  const BodySink* sink = nullptr;
  std::chrono::steady_clock::time_point last_sign =
      std::chrono::steady_clock::now();  // of life from the peer
  std::exception_ptr failure;
  bool is_redirect() const {
    return head.status >= 300 && head.status < 400 && head.headers.contains("location");
  }
};

std::string_view trim(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// A status line starts a new head: libcurl also shows those of interim (1xx) answers.
void take_header_line(std::string_view line, HttpHead& head) {
  if (line.starts_with("HTTP/")) {
    head = {};
    const auto space = line.find(' ');
    if (space != line.npos)
      for (const char c : line.substr(space + 1, 3))
        head.status = c >= '0' && c <= '9' ? head.status * 10 + (c - '0') : 0;
    return;
  }
  const auto colon = line.find(':');
  if (colon == line.npos) return;
  std::string name(line.substr(0, colon));
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  head.headers[name] = trim(line.substr(colon + 1));
}

// C callbacks: an exception must not cross libcurl, so it is kept and thrown again behind it.
std::size_t on_header(char* data, std::size_t, std::size_t count, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  exchange.last_sign = std::chrono::steady_clock::now();
  try {
    take_header_line({data, count}, exchange.head);
    return count;
  } catch (...) {
    exchange.failure = std::current_exception();
    return 0;
  }
}

std::size_t on_body(char* data, std::size_t, std::size_t count, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  exchange.last_sign = std::chrono::steady_clock::now();
  if (exchange.is_redirect()) return count;
  try {
    (*exchange.sink)(exchange.head, std::as_bytes(std::span(data, count)));
    exchange.last_sign = std::chrono::steady_clock::now();  // a slow disk is not a silent peer
    return count;
  } catch (...) {
    exchange.failure = std::current_exception();
    return 0;
  }
}

bool may_help_to_retry(CURLcode code) {
  switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_ENGINE_NOTFOUND:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
    case CURLE_OUT_OF_MEMORY:
    case CURLE_FAILED_INIT:
    case CURLE_NOT_BUILT_IN:
      return false;
    default:
      return true;
  }
}

struct CurlString {
  char* text = nullptr;
  ~CurlString() { curl_free(text); }
};

std::string part_of(CURLU* url, CURLUPart part, unsigned flags, const std::string& whole) {
  CurlString value;
  if (curl_url_get(url, part, &value.text, flags) != CURLUE_OK || !value.text)
    fail(ErrorCode::invalid_argument, "http", "{} is not a URL", whole);
  return value.text;
}

}  // namespace

struct HttpClient::Connection {
  CURL* easy = curl_easy_init();
  CURLM* multi = curl_multi_init();
  curl_slist* headers = nullptr;
  char error_text[CURL_ERROR_SIZE] = {};

  ~Connection() {
    curl_easy_cleanup(easy);
    curl_multi_cleanup(multi);
    curl_slist_free_all(headers);
  }

  void configure(const HttpOptions& options, const std::string& url, const HttpRequest& request,
                 bool with_token, Exchange& exchange);
  CURLcode drive(const StopCheck& stop, const Exchange& exchange, std::chrono::seconds stall);
};

void HttpClient::Connection::configure(const HttpOptions& options, const std::string& url,
                                       const HttpRequest& request, bool with_token, Exchange& exchange) {
  curl_easy_reset(easy);  // keeps live connections
  curl_slist_free_all(headers);
  headers =
      curl_slist_append(nullptr, "Accept-Encoding: identity");  // sizes and hashes speak of the plain bytes
  if (request.range_from > 0)
    headers = curl_slist_append(headers, fmt::format("Range: bytes={}-", request.range_from).c_str());
  if (with_token)
    headers = curl_slist_append(headers, ("Authorization: Bearer " + request.bearer_token).c_str());
  error_text[0] = '\0';
  curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, error_text);
  curl_easy_setopt(easy, CURLOPT_USERAGENT, options.user_agent.c_str());
  curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);  // hops are ours: see the token rule in the header
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, kReceiveBuffer);
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, static_cast<long>(options.connect_timeout.count()));
#if LIBCURL_VERSION_NUM >= 0x075500
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS, static_cast<long>(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
#if LIBCURL_VERSION_NUM >= 0x075700
  curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);  // a hanging name look-up must not delay Ctrl-C
#endif
  if (!options.ca_file.empty()) curl_easy_setopt(easy, CURLOPT_CAINFO, options.ca_file.c_str());
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, &exchange);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &exchange);
}

// The multi interface, because curl_easy_perform may sleep a whole second between two looks at the world. The
// stall is measured here because libcurl's own low-speed rule works on an average of the last five seconds.
CURLcode HttpClient::Connection::drive(const StopCheck& stop, const Exchange& exchange,
                                       std::chrono::seconds stall) {
  struct Attached {
    CURLM* multi;
    CURL* easy;
    ~Attached() { curl_multi_remove_handle(multi, easy); }
  };
  curl_multi_add_handle(multi, easy);
  const Attached attached{multi, easy};
  for (int running = 1; running;) {
    if (const auto code = curl_multi_perform(multi, &running); code != CURLM_OK)
      fail(ErrorCode::internal, "http", "libcurl: {}", curl_multi_strerror(code));
    if (stop && stop()) fail(ErrorCode::cancelled, "http", "stopped on request");
    if (running && std::chrono::steady_clock::now() - exchange.last_sign > stall)
      throw TransferError(fmt::format("nothing came for {} s", stall.count()), true);
    if (running) curl_multi_poll(multi, nullptr, 0, 100, nullptr);
  }
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi, &left))
    if (message->msg == CURLMSG_DONE) return message->data.result;
  return CURLE_RECV_ERROR;
}

void initialise_http() {
  if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
    fail(ErrorCode::internal, "http", "libcurl could not be initialised");
}

std::optional<std::string> HttpHead::header(const std::string& name) const {
  const auto found = headers.find(name);
  if (found == headers.end()) return std::nullopt;
  return found->second;
}

HttpClient::HttpClient(HttpOptions options, StopCheck stop)
    : options_(std::move(options)), stop_(std::move(stop)), connection_(std::make_unique<Connection>()) {
  if (!connection_->easy || !connection_->multi) fail(ErrorCode::internal, "http", "libcurl gave no handle");
}
HttpClient::~HttpClient() = default;

HttpHead HttpClient::get(const HttpRequest& request, const BodySink& sink) {
  const std::string home = origin_of(request.url);
  std::string url = request.url;
  for (int hop = 0; hop <= kMaxRedirects; ++hop) {
    Exchange exchange{.head = {}, .sink = &sink, .failure = nullptr};
    const bool with_token = !request.bearer_token.empty() && origin_of(url) == home;
    connection_->configure(options_, url, request, with_token, exchange);
    const CURLcode code = connection_->drive(stop_, exchange, options_.stall);
    if (exchange.failure) std::rethrow_exception(exchange.failure);
    if (code != CURLE_OK) {
      const char* text = connection_->error_text[0] ? connection_->error_text : curl_easy_strerror(code);
      throw TransferError(fmt::format("{}: {}", url, text), may_help_to_retry(code));
    }
    if (!exchange.is_redirect()) return exchange.head;
    const char* next = nullptr;
    curl_easy_getinfo(connection_->easy, CURLINFO_REDIRECT_URL, &next);
    if (!next) throw TransferError(fmt::format("{}: redirected to no usable address", url), false);
    const std::string target = next;
    if (url.starts_with("https:") && !target.starts_with("https:"))
      throw TransferError(fmt::format("{}: refusing a redirect from https to {}", url, target), false);
    url = target;
  }
  throw TransferError(fmt::format("{}: more than {} redirects", request.url, kMaxRedirects), false);
}

std::string origin_of(const std::string& url) {
  const std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> parsed(curl_url(), curl_url_cleanup);
  if (!parsed || curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK)
    fail(ErrorCode::invalid_argument, "http", "{} is not a URL", url);
  const auto scheme = part_of(parsed.get(), CURLUPART_SCHEME, 0, url);
  if (scheme != "http" && scheme != "https")
    fail(ErrorCode::invalid_argument, "http", "{}: only http and https", url);
  auto host = part_of(parsed.get(), CURLUPART_HOST, 0, url);
  std::transform(host.begin(), host.end(), host.begin(), [](unsigned char c) { return std::tolower(c); });
  return scheme + "://" + host + ":" + part_of(parsed.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT, url);
}

std::optional<std::time_t> parse_http_date(const std::string& text) {
  const std::time_t date = curl_getdate(text.c_str(), nullptr);
  if (date < 0) return std::nullopt;
  return date;
}

std::string url_escape(std::string_view text, bool keep_slashes) {
  std::string result;
  for (const unsigned char c : text) {
    const bool is_plain = (c < 128 && std::isalnum(c)) || c == '-' || c == '.' || c == '_' || c == '~';
    if (is_plain || (c == '/' && keep_slashes))
      result += static_cast<char>(c);
    else
      result += fmt::format("%{:02X}", c);
  }
  return result;
}

}  // namespace godwit::hub
