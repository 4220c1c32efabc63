// Which files of a folder are opened while a test runs, by the system's own account.
#pragma once

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace godwit::models {

class FileWatch {
 public:
  explicit FileWatch(const std::filesystem::path& folder) : queue_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    EXPECT_GE(inotify_add_watch(queue_, folder.c_str(), IN_OPEN), 0);
  }
  ~FileWatch() { close(queue_); }
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

  // Names of the files that were opened since the last call.
  std::set<std::string> opened() const {
    std::set<std::string> names;
    alignas(inotify_event) std::array<char, 65536> bytes;
    for (ssize_t size = 0; (size = read(queue_, bytes.data(), bytes.size())) > 0;)
      for (const char* at = bytes.data(); at < bytes.data() + size;) {
        inotify_event event;
        std::memcpy(&event, at, sizeof event);
        if (event.len > 0) names.insert(at + sizeof event);
        at += sizeof event + event.len;
      }
    return names;
  }

 private:
  int queue_;
};

}  // namespace godwit::models
