#include "cli/serve_flags.h"

#include <fstream>

#include "base/error.h"
#include "cli/usage.h"

namespace godwit::cli {
namespace {

void add_model_flags(CLI::App& verb, ServeFlags& flags) {
  verb.add_option("-m,--model", flags.models,
                  "A model to serve; repeatable, the first is the default (default: smollm2)");
  flags.model.add_settings_to(verb, /*with_chat=*/true);
  verb.add_option("--alias", flags.aliases, "A further name of the first model; repeatable");
  verb.add_option("--preload", flags.preload,
                  "Models that are loaded before the server is ready: first, all or none")
      ->check(CLI::IsMember({"first", "all", "none"}))
      ->capture_default_str();
  verb.add_option("--idle-unload", flags.idle_unload_seconds,
                  "Unload a model that nobody used for so many seconds; 0: never")
      ->check(at_least(0))
      ->capture_default_str();
  verb.add_option("--memory", flags.memory,
                  "Bytes for loaded models and their state together, such as 12G (default: no limit)");
  verb.add_option("--pooling", flags.pooling,
                  "Make embeddings of the hidden states of models that generate: mean, cls, last, max, none; auto: as "
                  "their own files say")
      ->group(kUnlisted)
      ->check(CLI::IsMember({"auto", "mean", "cls", "last", "max", "none"}))
      ->capture_default_str();
  verb.add_flag("--embed-accept-token-ids", flags.takes_token_ids,
                "Take token ids in place of text for embeddings; they must be of the model's own vocabulary")
      ->group(kUnlisted);
  flags.cache.add_to(verb);
}

void add_network_flags(CLI::App& verb, ServeFlags& flags) {
  serve::ServerOptions& server = flags.server;
  verb.add_option("--host", server.host, "Address to listen on")->capture_default_str();
  verb.add_option("--port", server.port, "Port; 0 takes a free one")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  verb.add_option("--port-file", flags.port_file, "Write the port there once the server is ready");
  verb.add_option("--ssl-cert-file", flags.certificate_file,
                  "Serve HTTPS with this certificate (PEM, chain behind it)");
  verb.add_option("--ssl-key-file", flags.key_file, "The key of --ssl-cert-file (PEM)");
  verb.add_option("--api-key", flags.api_keys, "Ask clients for this key; repeatable");
  verb.add_option("--api-key-file", flags.api_key_file, "Keys, one a line; # begins a comment");
  verb.add_option("--cors-origins", server.cors_origins,
                  "Origins whose pages may use the server beside local ones; * for all")
      ->delimiter(',');
}

void add_limit_flags(CLI::App& verb, ServeFlags& flags) {
  serve::HttpLimits& limits = flags.server.limits;
  verb.add_option("--state-memory", flags.state_memory,
                  "Bytes of keys, values and cached prompts for each model (default: what --memory leaves, "
                  "else what is free)")
      ->group(kUnlisted);
  verb.add_option("--max-rows", flags.engine.max_rows, "Answers that a model makes at the same time")
      ->group(kUnlisted)
      ->check(at_least(1))
      ->capture_default_str();
  verb.add_option("--max-queue", flags.engine.queue_limit, "Requests that may wait for a model")
      ->group(kUnlisted)
      ->capture_default_str();
  verb.add_option("--checkpoint", flags.engine.checkpoint_every,
                  "Tokens between two records of an answer in --cache-dir, from which it goes on after a "
                  "restart; 0: none")
      ->group(kUnlisted)
      ->check(at_least(0))
      ->capture_default_str();
  verb.add_option("--timeout", flags.server.request_seconds, "Seconds that a request may take")
      ->group(kUnlisted)
      ->check(at_least(0))
      ->capture_default_str();
  verb.add_option("--idle-timeout", limits.idle_seconds,
                  "Seconds without a byte before a connection is closed")
      ->group(kUnlisted)
      ->check(at_least(1))
      ->capture_default_str();
  verb.add_option("--max-connections", limits.connections, "Connections at the same time")
      ->group(kUnlisted)
      ->capture_default_str();
  verb.add_option("--max-body", flags.max_body, "Bytes of a request's body (default: 32M)")->group(kUnlisted);
  verb.add_flag("--keep-half-closed", limits.waits_for_half_closed,
                "Finish whole answers for clients that closed their sending side")
      ->group(kUnlisted);
  verb.footer(
      "Limits of requests and connections, and all of these in a file or the environment: docs/cli.md, "
      "docs/operations.md");
}

void add_operation_flags(CLI::App& verb, ServeFlags& flags) {
  verb.add_option("--config", flags.config, "Settings from this TOML file; flags and environment come first");
  verb.add_flag("--print-config", flags.prints_config,
                "Print the settings in force and where they come from, and end");
  verb.add_option("--drain-timeout", flags.drain_seconds,
                  "Seconds that answers may take to finish at the end")
      ->check(at_least(0))
      ->capture_default_str();
  verb.add_option("--log-level", flags.log.level,
                  "debug, info, warning or error (info on a terminal or as JSON, else warning)")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}));
  verb.add_option("--log-format", flags.log.format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  verb.add_option("--log-prompts", flags.log.prompts,
                  "Append requests and answers to this file, readable by its owner only");
}

void add_keys_of(const std::string& file, std::vector<std::string>& keys) {
  std::ifstream in(file);
  if (!in) fail(ErrorCode::io, "serve", "{}: cannot read the file of keys", file);
  const std::size_t before = keys.size();
  for (std::string line; std::getline(in, line);) {
    const auto begin = line.find_first_not_of(" \t\r");
    if (begin == std::string::npos || line[begin] == '#') continue;
    keys.push_back(line.substr(begin, line.find_last_not_of(" \t\r") + 1 - begin));
  }
  // It would protect nothing.
  if (keys.size() == before) fail(ErrorCode::invalid_argument, "serve", "{}: there is no key in it", file);
}

}  // namespace

void ServeFlags::add_to(CLI::App& verb) {
  add_model_flags(verb, *this);
  add_network_flags(verb, *this);
  add_limit_flags(verb, *this);
  add_operation_flags(verb, *this);
}

void ServeFlags::check() const {
  // An empty key comes from a shell variable that was never set; it would protect nothing.
  for (const std::string& key : api_keys)
    if (key.empty()) fail(ErrorCode::invalid_argument, "serve", "--api-key: the key is empty");
  if (certificate_file.empty() != key_file.empty())
    fail(ErrorCode::invalid_argument, "serve", "--ssl-cert-file and --ssl-key-file need each other");
}

serve::ServerSecrets ServeFlags::secrets() const {
  serve::ServerSecrets secrets{.api_keys = api_keys, .tls = nullptr};
  if (!api_key_file.empty()) add_keys_of(api_key_file, secrets.api_keys);
  if (!certificate_file.empty())
    secrets.tls = std::make_shared<serve::TlsIdentity>(certificate_file, key_file);
  return secrets;
}

serve::PoolOptions ServeFlags::pool() const {
  serve::PoolOptions options{.memory_bytes = {}, .idle_seconds = idle_unload_seconds};
  if (memory) options.memory_bytes = parse_bytes(*memory, "--memory");
  return options;
}

}  // namespace godwit::cli
