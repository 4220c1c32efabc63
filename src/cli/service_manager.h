// What systemd is told of the server: sd_notify(3), one datagram a message to the socket that NOTIFY_SOCKET
// names. Without that variable nothing is said.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base/environment.h"
#include "base/log.h"

namespace godwit::cli {

class ServiceManager {
 public:
  ServiceManager(const Environment& environment, Log log);
  ~ServiceManager();
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  // "READY=1", "STATUS=...", "STOPPING=1". What cannot be delivered is logged once.
  void notify(std::string_view state);
  // Where the manager asked for it (WATCHDOG_USEC, and WATCHDOG_PID if it is there names this process), says
  // WATCHDOG=1 twice in that time for as long as `is_alive` holds.
  void watch(std::function<bool()> is_alive);

 private:
  std::string socket_;
  Log log_;
  std::optional<double> watchdog_seconds_;
  bool has_failed_ = false;
  std::mutex mutex_;
  std::condition_variable over_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace godwit::cli
