// Where messages go. The library never prints: it is handed a Log by the program above it.
#pragma once

#include <functional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace godwit {

enum class LogLevel { debug, info, warning, error };

// A cheap value; a default one discards everything. The sink may be called from any thread.
class Log {
 public:
  using Sink = std::function<void(LogLevel, std::string_view)>;
  Log() = default;
  explicit Log(Sink sink) : sink_(std::move(sink)) {}

  template <typename... Args>
  void debug(fmt::format_string<Args...> format, Args&&... args) const {
    write(LogLevel::debug, format, std::forward<Args>(args)...);
  }
  template <typename... Args>
  void info(fmt::format_string<Args...> format, Args&&... args) const {
    write(LogLevel::info, format, std::forward<Args>(args)...);
  }
  template <typename... Args>
  void warning(fmt::format_string<Args...> format, Args&&... args) const {
    write(LogLevel::warning, format, std::forward<Args>(args)...);
  }
  template <typename... Args>
  void error(fmt::format_string<Args...> format, Args&&... args) const {
    write(LogLevel::error, format, std::forward<Args>(args)...);
  }

 private:
  template <typename... Args>
  void write(LogLevel level, fmt::format_string<Args...> format, Args&&... args) const {
    if (sink_) sink_(level, fmt::format(format, std::forward<Args>(args)...));
  }
  Sink sink_;
};

}  // namespace godwit
