// godwit serve: the HTTP server, from its flags to its end.
#include <mlx/device.h>
#include <mlx/version.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>

#include "base/error.h"
#include "base/mx.h"
#include "cli/command.h"
#include "cli/descriptors.h"
#include "cli/serve_flags.h"
#include "cli/service_manager.h"
#include "cli/settings.h"
#include "cli/signals.h"
#include "serve/access.h"
#include "serve/engine_pulse.h"
#include "serve/server.h"

namespace godwit::cli {
namespace {

// For models, caches, logs and threads.
constexpr std::size_t kOtherDescriptors = 256;

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

std::optional<std::filesystem::path> config_folder(const Environment& environment) {
  if (const auto xdg = environment.get("XDG_CONFIG_HOME")) return *xdg;
  if (const auto home = environment.get("HOME")) return std::filesystem::path(*home) / ".config";
  return std::nullopt;
}

// --config, and the user's own file behind it.
std::vector<ConfigFile> config_files(const ServeFlags& flags, const Environment& environment) {
  std::vector<ConfigFile> files;
  if (!flags.config.empty()) files.push_back(read_config_file(flags.config));
  if (const auto folder = config_folder(environment)) {
    const auto file = *folder / "godwit" / "config.toml";
    if (std::filesystem::is_regular_file(file)) files.push_back(read_config_file(file));
  }
  return files;
}

// The first file that has models says which.
const ConfigFile* models_file(const std::vector<ConfigFile>& files) {
  const auto found = std::ranges::find_if(files, [](const ConfigFile& file) { return !file.models.empty(); });
  return found == files.end() ? nullptr : &*found;
}

// Shown whatever the log level: it is about who may use this machine.
void warn_when_open_to_others(const ServeFlags& flags, const ServeLog& log) {
  if (serve::is_loopback_name(flags.server.host) || !flags.api_keys.empty() || !flags.api_key_file.empty())
    return;
  log.announce(
      fmt::format("WARNING: --host {} without --api-key: whoever reaches this machine may use the server",
                  flags.server.host));
}

serve::BuildInfo build_info(const CommandContext& context) {
  return {.version = context.version,
          .mlx = mx::version(),
          .backend = mx::default_device() == mx::Device::gpu ? "gpu" : "cpu"};
}

std::string names_of(const std::vector<serve::ModelEntry>& models) {
  std::string names;
  for (const serve::ModelEntry& model : models)
    names += fmt::format("{}{}{}", names.empty() ? "" : ", ", model.id,
                         model.is_loaded ? "" : " (when asked for)");
  return names;
}

void announce_ready(const serve::Server& server, const serve::ModelPool& pool, const ServeLog& log,
                    ServiceManager& manager) {
  const std::vector<serve::ModelEntry> models = pool.list();
  const serve::ModelEntry& first = models.front();
  log.announce(fmt::format("serving {} on {} (context {}{})", names_of(models), server.url(),
                           first.context_length, first.settings.empty() ? "" : ", " + first.settings));
  manager.notify(fmt::format("READY=1\nSTATUS=serving {} on {}", names_of(models), server.url()));
}

// A file that cannot be read leaves what there was in force.
void reload(const ServeFlags& flags, serve::Server& server, const ServeLog& log) {
  try {
    log.reopen();
    server.exchange(flags.secrets());
    log.announce("read keys and certificate again");
  } catch (const Error& error) {
    log.announce(fmt::format("keys and certificate stay as they were: {}", error.what()));
  }
}

int serve_until_the_end(const ServeFlags& flags, const std::vector<ConfigFile>& files,
                        const CommandContext& context, const ServeLog& lines) {
  const Log log = lines.log();
  warn_when_open_to_others(flags, lines);
  allow_descriptors(kOtherDescriptors + flags.server.limits.connections * serve::HttpConnection::kDescriptors, log);
  Signals signals;
  ServiceManager manager(context.environment, log);
  const ConfigFile* tables = models_file(files);
  serve::ModelPool pool(pool_models(flags, tables ? tables->models : std::vector<ConfigTable>(),
                                    tables ? tables->path : std::filesystem::path(), context, log),
                        flags.pool(), log);
  serve::ServerOptions options = flags.server;
  options.build = build_info(context);
  options.hooks = lines.hooks();
  options.hooks.drain = [&signals] { signals.ask_for_end(); };
  // The port first: a busy one should not cost the time of loading a model.
  serve::Server server(options, log);
  server.exchange(flags.secrets());
  server.start(pool);
  manager.notify("STATUS=loading " + names_of(pool.list()));
  pool.preload([] {});
  server.ready();
  const PortFile port_file(flags.port_file, server.port());
  announce_ready(server, pool, lines, manager);
  manager.watch([&pool] {
    return std::ranges::none_of(
        pool.list(), [](const auto& model) { return model.engine && serve::is_stuck(*model.engine); });
  });
  while (signals.wait() == Signals::Wish::reload) reload(flags, server, lines);
  manager.notify("STOPPING=1\nSTATUS=finishing the answers in progress");
  lines.announce("finishing the answers in progress; press Ctrl-C again to leave at once");
  server.drain(flags.drain_seconds);
  server.stop();
  return kExitDone;
}

int run_serve(CLI::App& verb, ServeFlags& flags, CommandContext& context) {
  Settings settings(verb);
  settings.take(context.environment);
  // How to log is itself a setting, so warnings wait.
  std::vector<std::string> warnings;
  const Log notes([&warnings](LogLevel, std::string_view text) { warnings.emplace_back(text); });
  const std::vector<ConfigFile> files = config_files(flags, context.environment);
  for (const ConfigFile& file : files) {
    settings.take(file.settings, file.path, notes);
    for (const ConfigEntry& other : file.others)
      notes.warning("{}:{}: there is no table '{}'", file.path.string(), other.line, other.key);
  }
  flags.check();
  if (flags.max_body) flags.server.limits.body_bytes = parse_bytes(*flags.max_body, "--max-body");
  const ServeLog lines(flags.log, context.err_is_terminal);
  for (const std::string& warning : warnings) lines.log().warning("{}", warning);
  if (!flags.prints_config) return serve_until_the_end(flags, files, context, lines);
  context.out.write(settings.effective());
  return kExitDone;
}

}  // namespace

void add_serve(CLI::App& app, CommandContext& context) {
  auto flags = std::make_shared<ServeFlags>();
  CLI::App* verb = app.add_subcommand("serve", "Serve models over HTTP (the OpenAI API)");
  flags->add_to(*verb);
  verb->callback([flags, verb, &context] {
    context.action = [flags, verb, &context] { return run_serve(*verb, *flags, context); };
  });
}

}  // namespace godwit::cli
