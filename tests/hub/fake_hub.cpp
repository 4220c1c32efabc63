#include "fake_hub.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>

#include "base/json.h"
#include "hub/content_hash.h"

namespace godwit::hub_tests {
namespace {

// Small, so that what was handed to the kernel but never read by a killed client stays far below the test's
// bound.
constexpr int kSendBuffer = 32 * 1024;

std::string hash_of(const HubFile& file, hub::HashKind kind) {
  hub::ContentHash hash(kind, file.content.size());
  hash.update(std::as_bytes(std::span(file.content)));
  return hash.hex_digest();
}

std::string etag_of(const HubFile& file) {
  return hash_of(file, file.is_lfs ? hub::HashKind::sha256 : hub::HashKind::git_sha1);
}

Json listing_of(const std::string& repo, const std::string& commit, const std::vector<HubFile>& files) {
  Json siblings = Json::array();
  for (const auto& file : files) {
    Json entry = {{"rfilename", file.name},
                  {"size", file.content.size()},
                  {"blobId", hash_of(file, hub::HashKind::git_sha1)}};
    if (file.is_lfs)
      entry["lfs"] = {{"sha256", etag_of(file)}, {"size", file.content.size()}, {"pointerSize", 134}};
    siblings.push_back(entry);
  }
  return {{"id", repo}, {"modelId", repo}, {"sha", commit}, {"private", false}, {"siblings", siblings}};
}

Json tree_of(const std::vector<HubFile>& files) {
  Json tree = Json::array();
  for (const auto& file : files) {
    Json entry = {{"type", "file"},
                  {"path", file.name},
                  {"size", file.content.size()},
                  {"oid", hash_of(file, hub::HashKind::git_sha1)}};
    if (file.is_lfs)
      entry["lfs"] = {{"oid", etag_of(file)}, {"size", file.content.size()}, {"pointerSize", 134}};
    tree.push_back(entry);
  }
  return tree;
}

HubReply json_reply(const Json& body) {
  HubReply reply;
  reply.headers["Content-Type"] = "application/json";
  reply.body = dump_json(body);
  return reply;
}

HubReply missing(const std::string& code) {
  HubReply reply{.status = 404, .headers = {}, .body = "{}"};
  reply.headers["X-Error-Code"] = code;
  return reply;
}

std::optional<HubRequest> parse_request(const std::string& head) {
  HubRequest request;
  std::size_t line_end = head.find("\r\n");
  const std::string first = head.substr(0, line_end);
  const auto a = first.find(' '), b = first.rfind(' ');
  if (a == first.npos || b <= a) return std::nullopt;
  request.method = first.substr(0, a);
  request.target = first.substr(a + 1, b - a - 1);
  while (line_end + 2 < head.size()) {
    const auto next = head.find("\r\n", line_end + 2);
    const std::string line = head.substr(line_end + 2, next - line_end - 2);
    if (const auto colon = line.find(':'); colon != line.npos) {
      std::string name = line.substr(0, colon);
      std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
      request.headers[name] = line.substr(line.find_first_not_of(' ', colon + 1));
    }
    line_end = next;
  }
  return request;
}

// Reads up to the blank line; requests here have no body.
std::optional<HubRequest> read_request(int socket, std::string& buffer) {
  for (;;) {
    if (const auto end = buffer.find("\r\n\r\n"); end != buffer.npos) {
      auto request = parse_request(buffer.substr(0, end + 2));
      buffer.erase(0, end + 4);
      return request;
    }
    char piece[4096];
    const ssize_t count = ::recv(socket, piece, sizeof piece, 0);
    if (count <= 0) return std::nullopt;
    buffer.append(piece, static_cast<std::size_t>(count));
  }
}

std::string file_name_of(const std::string& target) {
  const auto at = target.find("/resolve/");
  if (at == target.npos) return "";
  return target.substr(target.find('/', at + std::strlen("/resolve/")) + 1);
}

}  // namespace

std::string random_content(std::size_t size, unsigned seed) {
  std::mt19937_64 generator(seed);
  std::string content(size, '\0');
  for (auto& byte : content) byte = static_cast<char>(generator());
  return content;
}

FakeHub::FakeHub() {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  ::setsockopt(listener_, SOL_SOCKET, SO_SNDBUF, &kSendBuffer, sizeof kSendBuffer);
  if (listener_ < 0 || ::bind(listener_, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      ::listen(listener_, 64) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length) != 0)
    throw std::runtime_error("the fake hub cannot listen on 127.0.0.1");
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { accept_loop(); });
}

FakeHub::~FakeHub() {
  is_stopping_ = true;
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  ::close(listener_);
  std::vector<std::thread> threads;
  {
    const std::lock_guard guard(mutex_);
    for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
    threads.swap(threads_);
  }
  for (auto& thread : threads) thread.join();
}

std::string FakeHub::endpoint() const { return fmt::format("http://127.0.0.1:{}", port_); }

void FakeHub::add_repo(const std::string& repo, const std::string& commit, std::vector<HubFile> files) {
  const std::lock_guard guard(mutex_);
  repos_[repo] = {commit, std::move(files)};
}

void FakeHub::set_hook(Hook hook) {
  const std::lock_guard guard(mutex_);
  hook_ = std::move(hook);
}

std::vector<HubRequest> FakeHub::requests() const {
  const std::lock_guard guard(mutex_);
  return requests_;
}

std::size_t FakeHub::file_requests(const std::string& name) const {
  const std::lock_guard guard(mutex_);
  return static_cast<std::size_t>(
      std::count_if(requests_.begin(), requests_.end(), [&](const HubRequest& request) {
        return request.method == "GET" && file_name_of(request.target) == name;
      }));
}

std::uint64_t FakeHub::bytes_of(const std::string& name) const {
  const std::lock_guard guard(mutex_);
  const auto found = bytes_.find(name);
  return found == bytes_.end() ? 0 : found->second;
}

void FakeHub::accept_loop() {
  while (!is_stopping_) {
    const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) continue;
    ++connections_;
    const std::lock_guard guard(mutex_);
    sockets_.insert(socket);
    threads_.emplace_back([this, socket] { serve(socket); });
  }
}

void FakeHub::serve(int socket) {
  std::string buffer;
  while (const auto request = read_request(socket, buffer)) {
    HubReply reply;
    {
      const std::lock_guard guard(mutex_);
      requests_.push_back(*request);
      reply = regular_reply(*request);
      if (hook_) hook_(*request, reply);
    }
    if (!send_reply(socket, *request, reply)) break;
  }
  const std::lock_guard guard(mutex_);
  sockets_.erase(socket);
  ::close(socket);
}

HubReply FakeHub::regular_reply(const HubRequest& request) const {
  const std::string path = request.target.substr(0, request.target.find('?'));
  for (const auto& [name, repo] : repos_) {
    const std::string api = "/api/models/" + name;
    if (path == api || path == api + "/revision/main" || path == api + "/revision/" + repo.commit)
      return json_reply(listing_of(name, repo.commit, repo.files));
    if (path == api + "/tree/" + repo.commit) return json_reply(tree_of(repo.files));
    if (path.starts_with(api + "/revision/")) return missing("RevisionNotFound");
    for (const auto& file : repo.files)
      if (path == "/" + name + "/resolve/" + repo.commit + "/" + file.name ||
          path == "/" + name + "/resolve/main/" + file.name)
        return file_reply(request, repo, file);
  }
  return missing("RepoNotFound");
}

HubReply FakeHub::file_reply(const HubRequest& request, const Repo& repo, const HubFile& file) const {
  HubReply reply;
  reply.headers["ETag"] = "\"" + etag_of(file) + "\"";
  reply.headers["X-Linked-Etag"] = "\"" + etag_of(file) + "\"";
  reply.headers["X-Linked-Size"] = fmt::format("{}", file.content.size());
  reply.headers["X-Repo-Commit"] = repo.commit;
  reply.headers["Accept-Ranges"] = "bytes";
  const auto range = request.headers.find("range");
  if (range == request.headers.end()) {
    reply.body = file.content;
    return reply;
  }
  const auto from = std::stoull(range->second.substr(std::strlen("bytes=")));
  if (from >= file.content.size()) {
    reply.status = 416;
    reply.headers["Content-Range"] = fmt::format("bytes */{}", file.content.size());
    return reply;
  }
  reply.status = 206;
  reply.headers["Content-Range"] =
      fmt::format("bytes {}-{}/{}", from, file.content.size() - 1, file.content.size());
  reply.body = file.content.substr(from);
  return reply;
}

bool FakeHub::send_reply(int socket, const HubRequest& request, const HubReply& reply) {
  std::string head = fmt::format("HTTP/1.1 {} Reply\r\n", reply.status);
  for (const auto& [name, value] : reply.headers) head += name + ": " + value + "\r\n";
  head += fmt::format("Content-Length: {}\r\n\r\n", reply.body.size());
  if (::send(socket, head.data(), head.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(head.size()))
    return false;
  if (request.method == "HEAD") return true;
  const std::string name = file_name_of(request.target);
  const std::size_t end = std::min(reply.cut_after, reply.body.size());
  for (std::size_t at = 0; at < end && !is_stopping_;) {
    const auto count = ::send(socket, reply.body.data() + at, std::min(reply.piece, end - at), MSG_NOSIGNAL);
    if (count <= 0) return false;
    at += static_cast<std::size_t>(count);
    {
      const std::lock_guard guard(mutex_);
      bytes_[name] += static_cast<std::uint64_t>(count);
    }
    if (reply.pause.count() > 0) std::this_thread::sleep_for(reply.pause);
  }
  if (end == reply.body.size() && reply.cut_after == std::string::npos) return true;
  char byte = 0;
  if (reply.hang_at_cut) ::recv(socket, &byte, 1, 0);  // until the peer or the destructor closes
  return false;
}

}  // namespace godwit::hub_tests
