#include "cli/serve_log.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <mutex>

#include "base/error.h"
#include "base/json.h"
#include "serve/access_line.h"

namespace godwit::cli {
namespace {

constexpr const char* kLevels[] = {"debug", "info", "warning", "error"};

std::string_view name_of(LogLevel level) { return kLevels[static_cast<int>(level)]; }

// 2026-01-31T12:00:00.123Z
std::string now_text() {
  const auto now = std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const auto seconds = std::chrono::time_point_cast<std::chrono::seconds>(now);
  const auto rest = static_cast<int>((now - seconds).count());
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(std::chrono::system_clock::to_time_t(now)),
                     rest);
}

LogLevel least_level(const LogFlags& flags, bool is_terminal) {
  for (int level = 0; level < 4; ++level)
    if (flags.level == kLevels[level]) return static_cast<LogLevel>(level);
  return is_terminal || flags.format == "json" ? LogLevel::info : LogLevel::warning;
}

void write_line(const std::string& line) { std::fwrite(line.data(), 1, line.size(), stderr); }

// Appends to a file that only its owner can read.
class PrivateFile {
 public:
  explicit PrivateFile(std::string path) : path_(std::move(path)) { open(); }
  ~PrivateFile() { close(); }
  PrivateFile(const PrivateFile&) = delete;
  PrivateFile& operator=(const PrivateFile&) = delete;

  void reopen() {
    const std::lock_guard lock(mutex_);
    close();
    open();
  }
  void append(const std::string& line) {
    const std::lock_guard lock(mutex_);
    if (::write(descriptor_, line.data(), line.size()) < 0)
      fail(ErrorCode::io, "serve", "{}: cannot write the file of prompts", path_);
  }

 private:
  void open() {
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    // One that exists may have been readable by others.
    if (descriptor_ < 0 || ::fchmod(descriptor_, 0600) != 0)
      fail(ErrorCode::io, "serve", "{}: cannot open the file of prompts", path_);
  }
  void close() {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = -1;
  }

  const std::string path_;
  std::mutex mutex_;  // guards the descriptor
  int descriptor_ = -1;
};

}  // namespace

std::string escape_controls(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  return out;
}

struct ServeLog::Impl {
  LogLevel least = LogLevel::warning;
  bool is_json = false;
  std::unique_ptr<PrivateFile> prompts;

  void write(LogLevel level, std::string_view id, std::string_view message) const {
    if (level < least) return;
    if (!is_json)
      return write_line(fmt::format("godwit: {}: {}{}{}\n", name_of(level), escape_controls(id),
                                    id.empty() ? "" : ": ", escape_controls(message)));
    Json json{{"time", now_text()}, {"level", name_of(level)}};
    if (!id.empty()) json["id"] = id;
    json["message"] = message;
    write_line(dump_json(json) + "\n");
  }

  void access(const serve::RequestRecord& record) const {
    if (LogLevel::info < least) return;
    if (!is_json)
      return write_line(fmt::format("godwit: info: {} {}: {}\n", now_text(), escape_controls(record.id),
                                    escape_controls(serve::access_text(record))));
    Json json{{"time", now_text()}, {"level", "info"}, {"message", "request"}};
    json.update(serve::access_json(record));
    write_line(dump_json(json) + "\n");
  }

  void keep_prompt(const serve::RequestRecord& record, std::string_view body) const {
    const Json json{{"time", now_text()},    {"id", record.id}, {"route", record.route},
                    {"model", record.model}, {"request", body}, {"answers", record.answers}};
    try {
      prompts->append(dump_json(json) + "\n");
    } catch (const Error& error) {
      write(LogLevel::error, record.id, error.what());
    }
  }
};

ServeLog::ServeLog(const LogFlags& flags, bool is_terminal) : impl_(std::make_shared<Impl>()) {
  impl_->least = least_level(flags, is_terminal);
  impl_->is_json = flags.format == "json";
  if (!flags.prompts.empty()) impl_->prompts = std::make_unique<PrivateFile>(flags.prompts);
}

ServeLog::~ServeLog() = default;

Log ServeLog::log() const {
  return Log([impl = impl_](LogLevel level, std::string_view message) { impl->write(level, "", message); });
}

void ServeLog::announce(std::string_view text) const {
  if (!impl_->is_json) return write_line(fmt::format("godwit: {}\n", escape_controls(text)));
  write_line(dump_json(Json{{"time", now_text()}, {"level", "info"}, {"message", text}}) + "\n");
}

serve::Hooks ServeLog::hooks() const {
  serve::Hooks hooks;
  hooks.request_line = [impl = impl_](LogLevel level, std::string_view id, std::string_view message) {
    impl->write(level, id, message);
  };
  hooks.access_line = [impl = impl_](const serve::RequestRecord& record) { impl->access(record); };
  if (impl_->prompts)
    hooks.prompt_line = [impl = impl_](const serve::RequestRecord& record, std::string_view body) {
      impl->keep_prompt(record, body);
    };
  return hooks;
}

void ServeLog::reopen() const {
  if (impl_->prompts) impl_->prompts->reopen();
}

}  // namespace godwit::cli
