#include "cli/model_flags.h"

#include "base/error.h"
#include "base/thread_pool.h"
#include "cli/usage.h"
#include "hub/model_resolver.h"
#include "kernels/select.h"

namespace godwit::cli {
namespace {

void add_math_flags(CLI::App& verb, std::string& math, std::optional<int>& threads) {
  verb.add_option("--math", math,
                  "Arithmetic: auto is native where the profile promises something of it and our kernels serve the model, else reference")
      ->check(CLI::IsMember({"auto", "reference", "native"}))
      ->capture_default_str();
  verb.add_option("--threads", threads,
                  "Threads of native arithmetic (default: the CPUs this process may use)")
      ->check(CLI::Range(1, 1024));
}

void apply_math_flags(const std::string& math, std::optional<int> threads, const Environment& environment,
                      models::ModelOptions& options) {
  options.mode.reset();
  if (math == "native") options.mode = NumericMode::native;
  if (math == "reference") options.mode = NumericMode::reference;
  options.threads = threads.value_or(cpu_allowance());
  if (const auto level = environment.get("GODWIT_CPU_LEVEL")) {
    options.level = kernels::level_from_name(*level);
    kernels::kernels_for(options.level);
  }
}

models::Compile compile_mode(const std::string& said) {
  if (said == "off") return models::Compile::off;
  if (said == "on") return models::Compile::on;
  return said == "required" ? models::Compile::required : models::Compile::automatic;
}

// Nothing where it is off or there is no home for it.
std::optional<std::filesystem::path> packed_folder(const std::optional<std::string>& flag, const Environment& environment) {
  if (flag && flag->empty()) fail(ErrorCode::invalid_argument, "cli", "--packed-cache needs a folder or off");
  const std::optional<std::string> said = flag ? flag : environment.get("GODWIT_PACKED_CACHE");
  if (said == "off") return std::nullopt;
  if (said) return *said;
  if (!environment.get("HOME") && !environment.get("XDG_CACHE_HOME")) return std::nullopt;
  return environment.godwit_cache_folder() / "packed";
}

}  // namespace

void KvFlags::add_to(CLI::App& verb) {
  verb.add_option("--kv", kv,
                  "How the KV state is stored: dense[:bf16|f16|f32], affine:BITS[:GROUP], "
                  "turbo:KEY_BITS:VALUE_BITS[:parity], or config (the model's kv_config.json)")
      ->capture_default_str();
  verb.add_option("--kv-start", start, "Tokens that are kept densely before --kv encodes (default: 0)")
      ->check(at_least(0));
}

cache::KvPolicy KvFlags::policy() const {
  cache::KvPolicy policy = cache::parse_kv_policy(kv);
  if (start && !policy.per_layer && policy.codec.kind == cache::CodecKind::dense)
    fail(ErrorCode::invalid_argument, "cli", "--kv-start {} needs a quantized --kv; {} is stored as it is",
         *start, kv);
  policy.start = start.value_or(0);
  return policy;
}

void ModelFlags::add_to(CLI::App& verb, bool with_chat) {
  verb.add_option("-m,--model", model, "Folder, .gguf file, hub id or name of a model")
      ->capture_default_str();
  add_settings_to(verb, with_chat);
}

void ModelFlags::add_settings_to(CLI::App& verb, bool with_chat) {
  add_math_flags(verb, math, threads);
  kv.add_to(verb);
  verb.add_option("--activations", activations,
                  "What meets quantized weights: int8 (default; fast) or f32 (near the oracle; slow); native arithmetic")
      ->check(CLI::IsMember({"int8", "f32"}))
      ->option_text("TEXT");
  verb.add_option("--quantize-on-load", quantize_on_load,
                  "Quantize matrices of F32, F16 or BF16 while they are loaded: q8 (Q8_0) or q4 (Q4_0); native arithmetic")
      ->check(CLI::IsMember({"q8", "q4"}))
      ->option_text("TEXT");
  verb.add_option("--plan", plan,
                  "Run native steps by a plan recorded for the model's config: auto is where there is one, required is an "
                  "error without one, off takes the graph; the same bits")
      ->check(CLI::IsMember({"auto", "off", "required"}))
      ->option_text("TEXT=auto");
  verb.add_option("--packed-cache", packed_cache,
                  "Folder that keeps the packed weights of native arithmetic, or off (default: in the user's cache folder)");
  verb.add_option("--compile", compile,
                  "Record the graph of one token once and replay it: auto (on a GPU), on, off, or required; reference arithmetic")
      ->check(CLI::IsMember({"auto", "on", "off", "required"}))
      ->option_text("TEXT=auto");
  verb.add_option("--ctx", context_length, "Most tokens of a prompt and its answer")->check(at_least(1));
  if (with_chat)
    verb.add_option("--chat-template", chat_template, "Use this Jinja file instead of the model's own");
}

models::ModelOptions ModelFlags::options(const CommandContext& context) const {
  models::ModelOptions options;
  options.kv = kv.policy();
  apply_math_flags(math, threads, context.environment, options);
  if (activations)
    options.activations = *activations == "f32" ? kernels::ActivationForm::f32 : kernels::ActivationForm::int8;
  if (quantize_on_load)
    options.quantize_on_load = *quantize_on_load == "q8" ? kernels::BlockFormat::q8_0 : kernels::BlockFormat::q4_0;
  if (plan == "off") options.plan = models::PlanUse::off;
  if (plan == "required") options.plan = models::PlanUse::required;
  options.packed_folder = packed_folder(packed_cache, context.environment);
  options.compile = compile_mode(compile);
  options.context_length = context_length;
  if (!chat_template.empty()) options.chat_template = chat_template;
  const hub::ResolvedModel found = hub::resolve_model(model, context.environment);
  options.path = found.path;
  options.id = found.id;
  return options;
}

std::string_view name_of(NumericMode mode) { return mode == NumericMode::native ? "native" : "reference"; }

std::string arithmetic_of(const models::ModelBundle& model) {
  const bool is_f32 = model.activations() == kernels::ActivationForm::f32;
  return fmt::format("{}{}", name_of(model.mode), is_f32 ? ", f32 activations" : "");
}

std::string specialization_of(const models::ModelBundle& model) {
  return std::string(models::name_of(model.specialization()));
}

Json activations_of(const models::ModelBundle& model) {
  const auto form = model.activations();
  return form ? Json(models::name_of(*form)) : Json(nullptr);
}

Json compiled_of(const models::ModelBundle& model) {
  if (!model.compiled) return nullptr;
  const models::CompiledCounts& counts = model.compiled->counts();
  return {{"steps", counts.steps}, {"traces", counts.traces}, {"failures", counts.failures},
          {"nodes", counts.nodes}, {"calls", counts.calls}};
}

std::string name_of(const cache::KvPolicy& kv) {
  const std::string codec = cache::to_string(kv);
  return kv.start == 0 ? codec : fmt::format("{} from token {}", codec, kv.start);
}

}  // namespace godwit::cli
