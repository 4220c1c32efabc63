// godwit serve: the HTTP server, from its flags to its end.
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "cli/cache_flags.h"
#include "cli/command.h"
#include "cli/model_flags.h"
#include "cli/usage.h"
#include "decode/engine.h"
#include "hub/model_resolver.h"
#include "models/model_bundle.h"
#include "serve/access.h"
#include "serve/engine_adapter.h"
#include "serve/model_directory.h"
#include "serve/server.h"

namespace godwit::cli {
namespace {

struct ServeFlags {
  ModelFlags model;
  std::vector<std::string> aliases;
  serve::ServerOptions server;
  CacheFlags cache;
  std::string port_file;
  std::string log_level;
  double drain_seconds = 120;
};

// SIGINT and SIGTERM, taken one by one on a thread of their own. Made before any other thread, so that all of
// them inherit the blocked mask and no signal lands elsewhere.
class Signals {
 public:
  Signals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGINT);
    sigaddset(&set_, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set_, &before_);
    thread_ = std::thread([this] { listen(); });
  }
  ~Signals() {
    is_over_ = true;
    pthread_kill(thread_.native_handle(), SIGTERM);  // wakes it; nobody else can take this one
    thread_.join();
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // Blocks until the first signal. Before this is called a signal ends the program at once: there is nothing
  // to finish.
  void wait() {
    can_wait_ = true;
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [this] { return has_arrived_; });
  }

 private:
  // The first signal asks for an orderly end; a second one does not wait for it.
  void listen() {
    for (int count = 0;; ++count) {
      int number = 0;
      sigwait(&set_, &number);
      if (is_over_) return;
      if (count > 0 || !can_wait_) _exit(128 + number);
      const std::lock_guard lock(mutex_);
      has_arrived_ = true;
      arrived_.notify_all();
    }
  }

  sigset_t set_ = {};
  sigset_t before_ = {};
  std::atomic<bool> is_over_ = false;
  std::atomic<bool> can_wait_ = false;
  std::mutex mutex_;  // guards has_arrived_
  std::condition_variable arrived_;
  bool has_arrived_ = false;
  std::thread thread_;
};

void print_line(std::string_view text) {
  const std::string line = fmt::format("godwit: {}\n", text);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

// Several threads log here; one fwrite per line keeps lines whole.
Log log_for(const ServeFlags& flags, bool is_terminal) {
  static constexpr const char* kNames[] = {"debug", "info", "warning", "error"};
  LogLevel least = is_terminal ? LogLevel::info : LogLevel::warning;
  for (int level = 0; level < 4; ++level)
    if (flags.log_level == kNames[level]) least = static_cast<LogLevel>(level);
  return Log([least](LogLevel level, std::string_view message) {
    if (level >= least) print_line(fmt::format("{}: {}", kNames[static_cast<int>(level)], message));
  });
}

// The file of --port-file, from the moment the server is ready to its orderly end.
class PortFile {
 public:
  // Readers may watch for the file, so it appears whole. An empty path: no file.
  PortFile(std::string path, int port) : path_(std::move(path)) {
    if (path_.empty()) return;
    const std::string fresh = path_ + ".new";
    std::ofstream file(fresh);
    file << port << "\n";
    file.close();
    std::error_code error;
    if (file) std::filesystem::rename(fresh, path_, error);
    if (!file || error) fail(ErrorCode::io, "serve", "{}: cannot write the port file", path_);
  }
  // A port that nobody listens on any more may soon be another program's.
  ~PortFile() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove(path_, ignored);
  }
  PortFile(const PortFile&) = delete;
  PortFile& operator=(const PortFile&) = delete;

 private:
  const std::string path_;
};

std::int64_t now_unix() {
  using std::chrono::duration_cast, std::chrono::seconds, std::chrono::system_clock;
  return duration_cast<seconds>(system_clock::now().time_since_epoch()).count();
}

// An empty key comes from a shell variable that was never set; it would protect nothing. An empty
// GODWIT_API_KEY is an absent one, as everywhere in the environment.
void complete_keys(ServeFlags& flags, const Environment& environment) {
  for (const std::string& key : flags.server.api_keys)
    if (key.empty()) fail(ErrorCode::invalid_argument, "serve", "--api-key: the key is empty");
  if (const auto key = environment.get("GODWIT_API_KEY")) flags.server.api_keys.push_back(*key);
}

// Shown whatever the log level: it is about who may use this machine.
void warn_when_open_to_others(const ServeFlags& flags) {
  if (serve::is_loopback_name(flags.server.host) || !flags.server.api_keys.empty()) return;
  print_line(
      fmt::format("WARNING: --host {} without --api-key: whoever reaches this machine may use the server",
                  flags.server.host));
}

int run_serve(ServeFlags flags, const CommandContext& context) {
  complete_keys(flags, context.environment);
  warn_when_open_to_others(flags);
  const models::ModelOptions options = flags.model.options(context);
  const decode::PromptCacheOptions cache = flags.cache.options(decode::PromptCacheOptions::Use::in_native);
  Signals signals;
  const Log log = log_for(flags, context.err_is_terminal);
  // The port first: a busy one should not cost the time of loading a model.
  serve::Server server(flags.server, log);
  decode::Engine engine(options, log, cache);
  serve::EngineGenerator generator(engine);
  const serve::ServedModel model = serve::describe(engine, flags.aliases, now_unix());
  serve::SingleModel models(model, generator);
  server.start(models);
  const PortFile port_file(flags.port_file, server.port());
  print_line(fmt::format("serving {} on {} (context {}, math {}, kv {})", model.id, server.url(),
                         model.context_length, arithmetic_of(engine.model()),
                         name_of(engine.model().options.kv)));
  signals.wait();
  print_line("finishing the answers in progress; press Ctrl-C again to leave at once");
  server.drain(flags.drain_seconds);
  server.stop();
  return kExitDone;
}

}  // namespace

void add_serve(CLI::App& app, CommandContext& context) {
  auto flags = std::make_shared<ServeFlags>();
  CLI::App* verb = app.add_subcommand("serve", "Serve a model over HTTP (the OpenAI API)");
  flags->model.add_to(*verb, /*with_chat=*/true);
  verb->add_option("--alias", flags->aliases, "A further name that requests may use; repeatable");
  verb->add_option("--host", flags->server.host, "Address to listen on")->capture_default_str();
  verb->add_option("--port", flags->server.port, "Port; 0 takes a free one")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  verb->add_option("--port-file", flags->port_file, "Write the port there once the server is ready");
  flags->cache.add_to(*verb);
  verb->add_option("--api-key", flags->server.api_keys,
                   "Ask clients for this key; repeatable (also: GODWIT_API_KEY)");
  verb->add_option("--cors-origins", flags->server.cors_origins,
                   "Origins whose pages may use the server beside local ones; * for all")
      ->delimiter(',');
  verb->add_option("--drain-timeout", flags->drain_seconds,
                   "Seconds that answers may take to finish at the end")
      ->check(at_least(0))
      ->capture_default_str();
  verb->add_flag("--keep-half-closed", flags->server.limits.waits_for_half_closed,
                 "Finish whole answers for clients that closed their sending side");
  verb->add_option("--log-level", flags->log_level,
                   "debug, info, warning or error (info on a terminal, else warning)")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}));
  verb->callback(
      [flags, &context] { context.action = [flags, &context] { return run_serve(*flags, context); }; });
}

}  // namespace godwit::cli
