// The flags of `godwit serve`, and the models and secrets that they name.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/cache_flags.h"
#include "cli/command.h"
#include "cli/config_file.h"
#include "cli/model_flags.h"
#include "cli/serve_log.h"
#include "decode/engine_options.h"
#include "serve/model_pool.h"
#include "serve/server.h"

namespace godwit::cli {

struct ServeFlags {
  ModelFlags model;  // settings of every model, unless a table of the config file says otherwise
  std::vector<std::string> models;   // -m, in order; the first one is the default
  std::vector<std::string> aliases;  // of the first one
  std::string preload = "first";
  std::string pooling = "auto";
  bool takes_token_ids = false;
  double idle_unload_seconds = 0;
  std::optional<std::string> memory, state_memory;
  decode::EngineOptions engine;  // without its cache
  std::optional<std::string> max_body;
  serve::ServerOptions server;
  std::vector<std::string> api_keys;
  std::string api_key_file, certificate_file, key_file;
  CacheFlags cache;
  LogFlags log;
  std::string config, port_file;
  bool prints_config = false;
  double drain_seconds = 120;

  // The object must outlive the parse.
  void add_to(CLI::App& verb);
  // Throws Error{invalid_argument} for combinations that make no sense.
  void check() const;
  // Reads --api-key-file and the certificate. Throws Error naming the file.
  serve::ServerSecrets secrets() const;
  serve::PoolOptions pool() const;
};

// The models of -m, then those of [[models]] tables, whose keys are the flags of a model, `alias` and
// `preload`. Finds them on this machine and opens none. Throws Error as ModelFlags::options does, "FILE:LINE:
// ..." for those of a table.
std::vector<serve::PoolModel> pool_models(const ServeFlags& flags, const std::vector<ConfigTable>& tables,
                                          const std::filesystem::path& config, const CommandContext& context,
                                          const Log& log);

}  // namespace godwit::cli
