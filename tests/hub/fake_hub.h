// A hub on 127.0.0.1 for tests: the listing, tree and resolve routes of the Hugging Face API over HTTP/1.1,
// with a hook that may spoil any answer. It counts connections and body bytes, so a test can say what was
// fetched and what was not.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace godwit::hub_tests {

struct HubFile {
  std::string name;
  std::string content;
  bool is_lfs = false;  // named by sha256 instead of git's blob id
};

struct HubRequest {
  std::string method, target;
  std::map<std::string, std::string> headers;  // names in lower case
  bool is_file() const { return target.find("/resolve/") != std::string::npos; }
};

struct HubReply {
  int status = 200;
  std::map<std::string, std::string> headers;
  std::string body;
  std::size_t cut_after = std::string::npos;  // close the connection behind this many body bytes
  bool hang_at_cut = false;                   // ... or keep it open and say nothing more
  std::size_t piece = 64 * 1024;
  std::chrono::microseconds pause{0};  // between pieces
};

// Random bytes from a seed; equal for equal seeds.
std::string random_content(std::size_t size, unsigned seed);

class FakeHub {
 public:
  // May change or replace the regular reply. Called on connection threads, one at a time.
  using Hook = std::function<void(const HubRequest&, HubReply&)>;

  FakeHub();
  ~FakeHub();
  FakeHub(const FakeHub&) = delete;
  FakeHub& operator=(const FakeHub&) = delete;

  std::string endpoint() const;
  void add_repo(const std::string& repo, const std::string& commit, std::vector<HubFile> files);
  void set_hook(Hook hook);

  std::vector<HubRequest> requests() const;
  std::size_t file_requests(const std::string& name) const;
  std::uint64_t bytes_of(
      const std::string& name) const;  // body bytes handed to the socket for GETs of this file
  int connections() const { return connections_; }

 private:
  struct Repo {
    std::string commit;
    std::vector<HubFile> files;
  };
  void accept_loop();
  void serve(int socket);
  HubReply regular_reply(const HubRequest& request) const;
  HubReply file_reply(const HubRequest& request, const Repo& repo, const HubFile& file) const;
  bool send_reply(int socket, const HubRequest& request, const HubReply& reply);

  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> is_stopping_ = false;
  std::atomic<int> connections_ = 0;
  mutable std::mutex mutex_;  // guards everything below
  Hook hook_;
  std::map<std::string, Repo> repos_;
  std::vector<HubRequest> requests_;
  std::map<std::string, std::uint64_t> bytes_;
  std::set<int> sockets_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

}  // namespace godwit::hub_tests
