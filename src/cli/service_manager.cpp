#include "cli/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstring>

namespace godwit::cli {
namespace {

// Of half the time that the manager waits.
std::optional<double> watchdog_seconds(const Environment& environment) {
  const auto said = environment.get("WATCHDOG_USEC");
  if (!said) return std::nullopt;
  if (const auto pid = environment.get("WATCHDOG_PID"); pid && *pid != std::to_string(::getpid()))
    return std::nullopt;
  std::uint64_t microseconds = 0;
  const auto [end, error] = std::from_chars(said->data(), said->data() + said->size(), microseconds);
  if (error != std::errc() || end != said->data() + said->size() || microseconds == 0) return std::nullopt;
  return static_cast<double>(microseconds) * 1e-6 / 2;
}

// 0 or the errno of what went wrong. A name that begins with @ is in the abstract namespace.
int send_datagram(const std::string& socket_name, std::string_view text) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (socket_name.size() >= sizeof address.sun_path) return ENAMETOOLONG;
  std::memcpy(address.sun_path, socket_name.data(), socket_name.size());
  if (socket_name.front() == '@') address.sun_path[0] = '\0';
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_name.size());
  const int descriptor = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return errno;
  const auto sent = ::sendto(descriptor, text.data(), text.size(), MSG_NOSIGNAL,
                             reinterpret_cast<const sockaddr*>(&address), length);
  const int problem = sent < 0 ? errno : 0;
  ::close(descriptor);
  return problem;
}

}  // namespace

ServiceManager::ServiceManager(const Environment& environment, Log log)
    : socket_(environment.get("NOTIFY_SOCKET").value_or("")), log_(std::move(log)) {
  if (!socket_.empty()) watchdog_seconds_ = watchdog_seconds(environment);
}

ServiceManager::~ServiceManager() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  over_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ServiceManager::notify(std::string_view state) {
  if (socket_.empty()) return;
  const int problem = send_datagram(socket_, state);
  const std::lock_guard lock(mutex_);
  if (problem == 0 || has_failed_) return;
  has_failed_ = true;
  log_.warning("the service manager at {} cannot be told: {}", socket_, std::strerror(problem));
}

void ServiceManager::watch(std::function<bool()> is_alive) {
  if (!watchdog_seconds_) return;
  thread_ = std::thread([this, is_alive = std::move(is_alive)] {
    const std::chrono::duration<double> pause(*watchdog_seconds_);
    std::unique_lock lock(mutex_);
    while (!is_over_) {
      lock.unlock();
      if (is_alive()) notify("WATCHDOG=1");
      lock.lock();
      over_.wait_for(lock, pause, [this] { return is_over_; });
    }
  });
}

}  // namespace godwit::cli
