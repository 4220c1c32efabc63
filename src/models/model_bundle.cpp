#include "models/model_bundle.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/file_map.h"
#include "base/mx_error.h"
#include "base/mx_ops.h"
#include "kernels/quantize_blocks.h"
#include "models/bundle_text.h"
#include "models/opening.h"

namespace godwit::models {
namespace {

namespace fs = std::filesystem;

void check_options(const ModelOptions& options) {
  if (options.context_length && *options.context_length <= 0)
    fail(ErrorCode::invalid_argument, "models", "a context of {} tokens; at least 1 is needed",
         *options.context_length);
  if (options.quantize_on_load && options.mode == NumericMode::reference)
    fail(ErrorCode::invalid_argument, "models", "{}: weights are quantized on load for native arithmetic, not for reference",
         options.id);
  if (options.plan == PlanUse::required && options.mode == NumericMode::reference)
    fail(ErrorCode::invalid_argument, "models",
         "{}: a plan is required, and there is none for reference arithmetic: plans are of native", options.id);
  if (options.activations && options.mode == NumericMode::reference)
    fail(ErrorCode::invalid_argument, "models",
         "{}: activations in {} are a choice of native arithmetic; in reference they have the model's dtype", options.id,
         name_of(*options.activations));
  const bool is_native = options.mode == NumericMode::native || options.quantize_on_load || options.activations;
  if (is_native && (options.compile == Compile::on || options.compile == Compile::required))
    fail(ErrorCode::invalid_argument, "models", "{}: compiled steps replay graphs of reference arithmetic; native has none",
         options.id);
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
         "{}: the KV policy config needs a folder with a kv_config.json, and "
         "this is a single file",
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

class GraphLoader {
 public:
  GraphLoader(ModelBundle& bundle, const Opening& opening, const Registry& registry, const Log& log)
      : bundle_(bundle), opening_(opening), registry_(registry), log_(log) {}

  void load() const {
    const std::optional<NumericMode> asked = bundle_.options.mode;
    if (asked == NumericMode::reference) return load_reference();
    const bool is_chosen = asked || bundle_.options.quantize_on_load || bundle_.options.activations;
    if (!is_chosen && bundle_.options.compile == Compile::required) {
      log_.info("math: reference, because a compiled step is required");
      return load_reference();
    }
    if (!is_chosen && !opening_.profile.profile->native) {
      if (needs_plan())
        refuse_plan(fmt::format("plans are of native arithmetic, of which the profile {} promises nothing",
                                opening_.profile.profile->id));
      log_.info("math: reference, because the profile {} promises nothing of native", opening_.profile.profile->id);
      return load_reference();
    }
    try {
      load_native();
      log_.info("math: native ({}, {} threads, {} activations)", kernels::level_name(bundle_.options.level),
                bundle_.options.threads, name_of(*bundle_.activations()));
    } catch (const Error& error) {
      if (is_chosen || error.code() != ErrorCode::unsupported) throw;
      if (needs_plan()) refuse_plan(fmt::format("native arithmetic cannot serve this model: {}", error.what()));
      log_.info("math: reference, because native cannot serve this model: {}", error.what());
      return load_reference();
    }
    make_plan();
  }

 private:
  void load_native() const {
    bundle_.mode = NumericMode::native;
    bundle_.runtime = std::make_unique<ops::NativeRuntime>(
        bundle_.options.level, bundle_.options.threads,
        bundle_.options.activations.value_or(kernels::ActivationForm::int8));
    bundle_.executor = std::make_unique<ops::Executor>(*bundle_.runtime);
    load_graph();
  }

  bool needs_plan() const { return bundle_.options.plan == PlanUse::required; }

  [[noreturn]] void refuse_plan(std::string_view reason) const {
    fail(ErrorCode::unsupported, "models", "{}: a plan is required, and there is none for the config {}: {}",
         opening_.checkpoint.config().origin, opening_.profile.config.shown(), reason);
  }

  // Whatever may keep a graph from being recorded, the graph itself can still run.
  void make_plan() const {
    if (bundle_.options.plan == PlanUse::off) return log_.info("plan: off");
    try {
      // Over dense rows: any span of tokens fits them.
      bundle_.plan = record_plan(*bundle_.graph, *bundle_.make_store({}),
                                 fmt::format("config {}\nartifact {}\nactivations {}\n", opening_.profile.config.digits,
                                             opening_.profile.profile->artifact, name_of(*bundle_.activations())));
    } catch (const Error& error) {
      bundle_.plan_problem = error.what();
      if (needs_plan()) refuse_plan(bundle_.plan_problem);
      return log_.info("plan: none, because {}", bundle_.plan_problem);
    }
    bundle_.executor->prepare(bundle_.plan->steps, /*tokens=*/1);
    log_.info("plan: {} for the config {}, {} nodes, key {}", name_of(bundle_.specialization()),
              opening_.profile.config.shown(), bundle_.plan->steps.nodes(ops::StepOutput::logits).size(),
              bundle_.plan->key.shown());
  }

  void load_reference() const {
    bundle_.mode = NumericMode::reference;
    bundle_.store.reset();
    bundle_.graph.reset();
    bundle_.executor.reset();
    bundle_.runtime.reset();
    load_graph();
  }

  void load_graph() const {
    // Refuses a policy by the name of its layer while nothing has been read yet.
    static_cast<void>(
        cache::StateStore(opening_.needs, bundle_.options.kv, bundle_.mode, bundle_.runtime.get()));
    const auto weights = opening_.checkpoint.weights(opening_.rules);
    for (const fs::path& file : weights->files())
      bundle_.weight_files.insert_or_assign(file, file_state(file));
    if (bundle_.runtime) weights->pack_with(bundle_.runtime->pool);
    const auto packed = packed_cache();
    if (packed) weights->cache_with(*packed);
    if (bundle_.options.quantize_on_load) weights->quantize_with(*bundle_.options.quantize_on_load);
    bundle_.graph = create_model(registry_, opening_.profile, bundle_.config, weights);
    if (bundle_.options.quantize_on_load && weights->quantized() == 0)
      fail(ErrorCode::unsupported, "models", "{}: there is nothing to quantize on load: no matrix is F32, F16 or BF16",
           bundle_.config.origin);
    bundle_.store = bundle_.make_store(bundle_.options.kv);
    if (packed) packed->save();
    compile(*weights);
  }

  void compile(const checkpoint::WeightStore& weights) const {
    const Compile asked = bundle_.options.compile;
    if (bundle_.mode == NumericMode::native) return;
    const bool is_on = asked == Compile::automatic ? mx::default_device() == mx::Device::gpu : asked != Compile::off;
    bundle_.exchangeable = weights.exchangeable();
    if (is_on) bundle_.compile(asked == Compile::required, log_);
    log_.info("compiled step: {}", is_on ? "on" : asked == Compile::off ? "off" : "off, as it gains nothing on CPU");
  }

  std::unique_ptr<checkpoint::PackedCache> packed_cache() const {
    const ModelOptions& options = bundle_.options;
    if (!bundle_.runtime || !options.packed_folder) return nullptr;
    const std::string variant(kernels::quantized_name(options.quantize_on_load));
    return std::make_unique<checkpoint::PackedCache>(*options.packed_folder, bundle_.weight_files, variant, log_);
  }

  ModelBundle& bundle_;
  const Opening& opening_;
  const Registry& registry_;
  const Log& log_;
};

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

struct ReadText {
  BundleText text;
  double seconds = 0;
};

// On a thread of its own, beside the weights: no array is touched here.
std::future<ReadText> read_text(const ModelOptions& options, const checkpoint::Checkpoint& checkpoint) {
  return std::async(std::launch::async | std::launch::deferred, [&] {
    const auto begin = Clock::now();
    ReadText read;
    read.text.tokenizer_problem = "it was opened for token ids alone";
    if (options.with_text) read.text = load_text(checkpoint, options);
    read.seconds = seconds_since(begin);
    return read;
  });
}

void take_text(ModelBundle& bundle, BundleText text) {
  bundle.tokenizer = std::move(text.tokenizer);
  bundle.tokenizer_problem = std::move(text.tokenizer_problem);
  bundle.chat_template = std::move(text.chat_template);
  bundle.end_ids = std::move(text.end_ids);
}

}  // namespace

std::unique_ptr<ModelBundle> ModelBundle::open(const ModelOptions& options, const Log& log) {
  const auto begin = Clock::now();
  check_options(options);
  const Catalogue catalogue = options.catalogue ? *options.catalogue : Catalogue::builtin();
  Opening opening = prepare(options.path, catalogue, options.artifact);
  const checkpoint::Config& config = opening.checkpoint.config();
  need_loop(opening.profile, {Loop::autoregressive}, config.origin);
  for (const std::string& warning : config.warnings) log.warning("{}", warning);
  for (const std::string& warning : opening.warnings) log.warning("{}", warning);

  auto bundle = std::make_unique<ModelBundle>();
  bundle->options = options;
  bundle->config = config;
  bundle->profile = opening.profile;
  bundle->context_length = limited_context(options, config, log);
  bundle->vocabulary = config.vocabulary;
  read_layers(bundle->options.kv, options.path, opening.needs);
  const double described = seconds_since(begin);
  std::future<ReadText> text = read_text(bundle->options, opening.checkpoint);
  try {
    translate_mx_errors("models", [&] { GraphLoader(*bundle, opening, catalogue.registry, log).load(); });
  } catch (...) {
    text.get();  // what is wrong with the text is said first, whichever thread was faster
    throw;
  }
  const double loaded = seconds_since(begin) - described;
  ReadText read = text.get();
  take_text(*bundle, std::move(read.text));
  opening.checkpoint.drop_text();
  log.info("opened in {:.3f} s: description {:.3f} s, weights {:.3f} s, text beside them {:.3f} s", seconds_since(begin),
           described, loaded, read.seconds);
  for (const std::string& warning : bundle->graph->warnings()) log.warning("{}", warning);
  const std::optional<Fidelity> fidelity = bundle->fidelity();
  log.info("profile: {} ({}{}), config {}", bundle->profile.profile->id,
           fidelity ? text_of(*fidelity) : "no promise in this arithmetic",
           options.quantize_on_load ? fmt::format(", of the weights as quantized to {} on load",
                                                  kernels::quantized_name(*options.quantize_on_load))
                                    : "",
           bundle->profile.config.shown());
  log.info("kv: {}", bundle->store->signature().to_string());
  return bundle;
}

void ModelBundle::compile(bool is_required, const Log& log) {
  GODWIT_CHECK(mode == NumericMode::reference, "a compiled step in native arithmetic");
  compiled = std::make_unique<CompiledStep>(*graph, exchangeable, is_required, log);
}

std::optional<kernels::ActivationForm> ModelBundle::activations() const {
  if (!runtime) return std::nullopt;
  return runtime->activations;
}

std::optional<Fidelity> ModelBundle::fidelity() const {
  if (!profile.profile) return std::nullopt;
  if (mode == NumericMode::reference) return profile.profile->reference;
  std::optional<Fidelity> promise = profile.profile->native;
  if (promise && options.quantize_on_load)
    promise->figures += fmt::format("; to the model as quantized to {} on load", kernels::quantized_name(*options.quantize_on_load));
  if (promise && activations() == kernels::ActivationForm::f32)
    promise->figures += "; with f32 activations only sums are rounded, in f32";
  return promise;
}

Specialization ModelBundle::specialization() const {
  if (plan) return specialization_of(*profile.profile, NumericMode::native);
  return profile.profile ? profile.profile->execution.specialization : Specialization::generic;
}

std::span<const float> ModelBundle::forward(std::span<const int> tokens, cache::Step& step,
                                            ops::StepOutput wanted, std::span<const int> chosen) const {
  GODWIT_CHECK(executor != nullptr, "a native step of a model in reference mode");
  if (plan)
    return executor->run(plan->steps, {tokens, step.row_offsets(), step.row_tokens(), step.native_layers()}, wanted, chosen);
  const mx::array input(tokens.begin(), {static_cast<int>(tokens.size())}, mx::int32);
  const mx::array hidden = graph->hidden(input, step);
  if (wanted == ops::StepOutput::logits) return executor->run(graph->logits(hidden), step.native_layers(), chosen);
  const std::span<const float> values = executor->run(hidden, step.native_layers(), chosen);
  return wanted == ops::StepOutput::state ? std::span<const float>() : values;
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
       "{}: chat needs a template, and neither the model nor --chat-template "
       "gives one",
       options.id);
}

}  // namespace godwit::models
