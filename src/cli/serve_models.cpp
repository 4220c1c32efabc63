// From -m and [[models]] to models that the pool can load.
#include <algorithm>
#include <cctype>
#include <chrono>

#include "base/error.h"
#include "checkpoint/config.h"
#include "checkpoint/gguf.h"
#include "checkpoint/parameter_count.h"
#include "checkpoint/safetensors.h"
#include "cli/model_summary.h"
#include "cli/serve_flags.h"
#include "cli/settings.h"
#include "cli/usage.h"
#include "hub/local_models.h"
#include "serve/engine_model.h"

namespace godwit::cli {
namespace {

std::int64_t now_unix() {
  using std::chrono::duration_cast, std::chrono::seconds, std::chrono::system_clock;
  return duration_cast<seconds>(system_clock::now().time_since_epoch()).count();
}

// One model before it is looked for.
struct Wanted {
  ModelFlags flags;
  std::vector<std::string> aliases;
  bool preload = false;
};

Wanted from_table(const ModelFlags& common, const ConfigTable& table, const std::filesystem::path& file,
                  const Log& log) {
  Wanted wanted{.flags = common, .aliases = {}, .preload = false};
  wanted.flags.model.clear();
  CLI::App settings;
  wanted.flags.add_to(settings, /*with_chat=*/true);
  settings.add_option("--alias", wanted.aliases);
  settings.add_flag("--preload", wanted.preload);
  take_plain_numbers_only(settings);
  Settings(settings).take(table, file, log);
  if (wanted.flags.model.empty())
    fail(ErrorCode::invalid_argument, "config", "{}:{}: a table of [[models]] needs a model", file.string(),
         table.empty() ? 1 : table.front().line);
  return wanted;
}

bool is_encoder(const ModelSummary& summary) {
  return summary.profile && summary.profile->profile->execution.loop == models::Loop::encoder;
}

// From the heads of its files; 0 where they cannot be read, which opening the model will tell.
std::int64_t parameters_of(const std::filesystem::path& path, bool is_gguf) {
  try {
    if (is_gguf) return checkpoint::parameter_count(checkpoint::open_gguf(path).tensors, {});
    const models::Catalogue catalogue = models::Catalogue::builtin();
    return checkpoint::parameter_count(checkpoint::read_safetensors_folder(path),
                                       checkpoint::read_config(path, catalogue.registry.dialects()).quantization);
  } catch (const Error&) {
    return 0;
  }
}

// What can be said of it from its files, before it is loaded.
serve::ModelEntry known_of(const models::ModelOptions& options, std::vector<std::string> aliases,
                           std::int64_t created) {
  const bool is_file = std::filesystem::is_regular_file(options.path);
  const hub::LocalModel local{.id = options.id,
                              .path = options.path,
                              .format = is_file ? hub::ModelFormat::gguf : hub::ModelFormat::safetensors,
                              .model_type = {},
                              .bytes = serve::weight_bytes(options.path),
                              .revision = {}};
  const ModelSummary summary = summarise(local, models::Catalogue::builtin());
  int context = summary.context.value_or(0);
  if (options.context_length && (context == 0 || *options.context_length < context))
    context = *options.context_length;
  if (const auto slash = options.id.rfind('/'); slash != std::string::npos)
    aliases.push_back(options.id.substr(slash + 1));
  return {.id = options.id,
          .aliases = std::move(aliases),
          .created = created,
          .is_loaded = false,
          .context_length = context,
          .architecture = summary.architecture,
          .quantization = summary.quantization,
          .parameters = parameters_of(options.path, is_file),
          .size_bytes = static_cast<std::int64_t>(local.bytes),
          .capabilities = is_encoder(summary) ? std::vector<std::string>{"embedding"} : std::vector<std::string>()};
}

// Models that share a folder of prompts would fight for its lock.
decode::PromptCacheOptions cache_of(const CacheFlags& flags, const std::string& id, bool is_alone) {
  decode::PromptCacheOptions cache = flags.options(decode::PromptCacheOptions::Use::in_native);
  if (is_alone || cache.folder.empty()) return cache;
  std::string name;
  for (const char c : id)
    name += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' ? c : '_';
  cache.folder /= name;
  return cache;
}

// Bytes for the state of each model. What --memory leaves beside the largest model that fits is shared
// evenly.
std::optional<std::size_t> state_bytes(const ServeFlags& flags,
                                       const std::vector<serve::ModelEntry>& models) {
  if (flags.state_memory) return parse_bytes(*flags.state_memory, "--state-memory");
  if (!flags.memory) return std::nullopt;
  const std::uint64_t all = parse_bytes(*flags.memory, "--memory");
  std::uint64_t largest = 0;
  for (const serve::ModelEntry& model : models)
    if (const auto bytes = static_cast<std::uint64_t>(model.size_bytes); bytes < all)
      largest = std::max(largest, bytes);
  return (all - largest) / models.size();
}

}  // namespace

std::vector<serve::PoolModel> pool_models(const ServeFlags& flags, const std::vector<ConfigTable>& tables,
                                          const std::filesystem::path& config, const CommandContext& context,
                                          const Log& log) {
  std::vector<Wanted> all;
  std::vector<std::string> named = flags.models;
  if (named.empty() && tables.empty()) named.push_back(flags.model.model);
  for (const std::string& model : named) {
    all.push_back({.flags = flags.model, .aliases = {}, .preload = false});
    all.back().flags.model = model;
  }
  for (const ConfigTable& table : tables) all.push_back(from_table(flags.model, table, config, log));
  all.front().aliases.insert(all.front().aliases.end(), flags.aliases.begin(), flags.aliases.end());
  all.front().preload = all.front().preload || flags.preload == "first";

  const std::int64_t created = now_unix();
  std::vector<models::ModelOptions> options;
  std::vector<serve::ModelEntry> known;
  for (const Wanted& wanted : all) {
    options.push_back(wanted.flags.options(context));
    known.push_back(known_of(options.back(), wanted.aliases, created));
  }
  const std::optional<std::size_t> state = state_bytes(flags, known);
  std::vector<serve::PoolModel> pool;
  for (std::size_t i = 0; i < all.size(); ++i) {
    decode::EngineOptions engine = flags.engine;
    engine.cache = cache_of(flags.cache, known[i].id, all.size() == 1);
    engine.memory_bytes = state;
    const serve::EngineModelOptions model{.model = options[i],
                                          .engine = engine,
                                          .aliases = all[i].aliases,
                                          .created = created,
                                          .is_encoder = !known[i].capabilities.empty(),
                                          .pooling = flags.pooling,
                                          .takes_token_ids = flags.takes_token_ids};
    pool.push_back({.known = known[i],
                    .bytes = static_cast<std::uint64_t>(known[i].size_bytes) + state.value_or(0),
                    .preload = all[i].preload || flags.preload == "all",
                    .load = [model, log] { return serve::open_engine_model(model, log); }});
  }
  return pool;
}

}  // namespace godwit::cli
