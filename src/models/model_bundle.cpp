#include "models/model_bundle.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/file_map.h"
#include "base/mx_error.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/config_defaults.h"
#include "models/bundle_text.h"
#include "models/registry.h"

namespace godwit::models {
namespace {

namespace fs = std::filesystem;

void check_options(const ModelOptions& options) {
  if (options.context_length && *options.context_length <= 0)
    fail(ErrorCode::invalid_argument, "models", "a context of {} tokens; at least 1 is needed",
         *options.context_length);
}

// An unknown model_type is named as such even where its config lacks the keys that every known family has.
void check_model_type(const fs::path& path, const Registry& registry) {
  const fs::path file = path / "config.json";
  if (!fs::exists(file)) return;
  const Json config = read_json_file(file);
  if (!config.is_object() || !config.contains("model_type") || !config["model_type"].is_string()) return;
  registry.find(checkpoint::remapped_model_type(config["model_type"].get<std::string>()), file.string());
}

int limited_context(const ModelOptions& options, const checkpoint::Config& config, const Log& log) {
  const int own = config.max_position_embeddings.value_or(std::numeric_limits<int>::max());
  const int asked = options.context_length.value_or(own);
  if (asked > own)
    log.warning("{}: a context of {} was asked for, the model ends at {}", config.origin, asked, own);
  return std::min(own, asked);
}

// --kv config: the codec of each layer, from the file that the quantizer of the model wrote beside it.
void read_layers(cache::KvPolicy& kv, const fs::path& model, const cache::StateNeeds& needs) {
  if (!kv.per_layer) return;
  if (!fs::is_directory(model))
    fail(ErrorCode::unsupported, "models",
         "{}: the KV policy config needs a folder with a kv_config.json, and this is a single file",
         model.string());
  const fs::path path = model / "kv_config.json";
  if (!fs::exists(path))
    fail(ErrorCode::not_found, "models", "{}: the KV policy config reads this file, and it is not there",
         path.string());
  const FileMap file(path);
  const auto bytes = file.bytes();
  cache::read_kv_config(kv, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path.string(),
                        static_cast<int>(needs.size()));
}

void load_graph(ModelBundle& bundle, const checkpoint::Checkpoint& checkpoint, const Family& family) {
  const checkpoint::WeightRules rules = family.rules(checkpoint.config());
  // Refuses a policy by the name of its layer while nothing has been read yet.
  static_cast<void>(cache::StateStore(family.needs(checkpoint.config()), bundle.options.kv, bundle.mode,
                                      bundle.runtime.get()));
  const auto weights = checkpoint.weights(rules);
  for (const fs::path& file : weights->files()) bundle.weight_files.insert_or_assign(file, file_state(file));
  if (bundle.runtime) weights->pack_with(bundle.runtime->pool);
  bundle.graph = family.make(checkpoint::WeightScope(weights, ""), checkpoint.config());
  weights->audit();
  bundle.store = bundle.make_store(bundle.options.kv);
}

void load_native(ModelBundle& bundle, const checkpoint::Checkpoint& checkpoint, const Family& family) {
  bundle.mode = NumericMode::native;
  bundle.runtime = std::make_unique<ops::NativeRuntime>(bundle.options.level, bundle.options.threads);
  bundle.executor = std::make_unique<ops::Executor>(*bundle.runtime);
  load_graph(bundle, checkpoint, family);
}

void load_reference(ModelBundle& bundle, const checkpoint::Checkpoint& checkpoint, const Family& family) {
  bundle.mode = NumericMode::reference;
  bundle.store.reset();
  bundle.graph.reset();
  bundle.executor.reset();
  bundle.runtime.reset();
  load_graph(bundle, checkpoint, family);
}

void load(ModelBundle& bundle, const checkpoint::Checkpoint& checkpoint, const Family& family,
          const Log& log) {
  const std::optional<NumericMode> asked = bundle.options.mode;
  if (asked == NumericMode::reference) return load_reference(bundle, checkpoint, family);
  try {
    load_native(bundle, checkpoint, family);
    log.info("math: native ({}, {} threads)", kernels::level_name(bundle.options.level),
             bundle.options.threads);
  } catch (const Error& error) {
    if (asked || error.code() != ErrorCode::unsupported) throw;
    log.info("math: reference, because native cannot serve this model: {}", error.what());
    load_reference(bundle, checkpoint, family);
  }
}

void take_text(ModelBundle& bundle, BundleText text) {
  bundle.tokenizer = std::move(text.tokenizer);
  bundle.tokenizer_problem = std::move(text.tokenizer_problem);
  bundle.chat_template = std::move(text.chat_template);
  bundle.end_ids = std::move(text.end_ids);
}

}  // namespace

std::unique_ptr<ModelBundle> ModelBundle::open(const ModelOptions& options, const Log& log) {
  check_options(options);
  const Registry registry = Registry::builtin();
  check_model_type(options.path, registry);
  const checkpoint::Checkpoint checkpoint = checkpoint::Checkpoint::open(options.path);
  const checkpoint::Config& config = checkpoint.config();
  const Family& family = registry.find(config.model_type, config.origin);
  for (const std::string& warning : config.warnings) log.warning("{}", warning);

  auto bundle = std::make_unique<ModelBundle>();
  bundle->options = options;
  bundle->config = config;
  bundle->context_length = limited_context(options, config, log);
  bundle->vocabulary = config.vocabulary;
  read_layers(bundle->options.kv, options.path, family.needs(config));
  translate_mx_errors("models", [&] { load(*bundle, checkpoint, family, log); });
  log.info("kv: {}", bundle->store->signature().to_string());
  take_text(*bundle, load_text(checkpoint, options));
  return bundle;
}

std::unique_ptr<cache::StateStore> ModelBundle::make_store(const cache::KvPolicy& kv) const {
  return std::make_unique<cache::StateStore>(graph->state_needs(), kv, mode, runtime.get());
}

const text::Tokenizer& ModelBundle::need_tokenizer() const {
  if (tokenizer) return *tokenizer;
  fail(ErrorCode::unsupported, "models", "{}: text needs a tokenizer, and there is none: {}", options.id,
       tokenizer_problem);
}

const text::ChatTemplate& ModelBundle::need_chat_template() const {
  if (chat_template) return *chat_template;
  fail(ErrorCode::unsupported, "models",
       "{}: chat needs a template, and neither the model nor --chat-template gives one", options.id);
}

}  // namespace godwit::models
