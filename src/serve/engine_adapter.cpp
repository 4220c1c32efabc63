#include "serve/engine_adapter.h"

#include <cmath>

#include "base/error.h"
#include "base/sha256.h"
#include "decode/grammar_source.h"
#include "kernels/quantize_blocks.h"
#include "models/model_bundle.h"
#include "text/turn/normalise_chat.h"

namespace godwit::serve {
namespace {

class JobSource final : public TokenSource {
 public:
  explicit JobSource(decode::Job job) : job_(std::move(job)) {}
  std::optional<decode::TokenEvent> next_for(double seconds, bool& timed_out) override {
    return job_.next_for(seconds, timed_out);
  }
  void cancel(int choice) override { job_.cancel(choice); }
  decode::Timings timings() const override { return job_.timings(); }
  std::uint64_t seed() const override { return job_.seed(); }
  bool has_begun() const override { return job_.has_begun(); }

 private:
  decode::Job job_;
};

// Changes whenever the numbers may: another model, mode, form of activations or KV policy.
std::string fingerprint_of(const models::ModelBundle& bundle) {
  const std::string_view activations = bundle.activations() ? models::name_of(*bundle.activations()) : "";
  const std::string identity = fmt::format("{}\n{}\n{}\n{}\n{}", bundle.options.id, bundle.store->signature().to_string(),
                                           kernels::quantized_name(bundle.options.quantize_on_load), activations,
                                           dump_json(bundle.config.raw));
  return "fp_" + sha256_of(identity).substr(0, 12);
}

std::string settings_of(const models::ModelBundle& bundle) {
  const cache::KvPolicy& kv = bundle.options.kv;
  return fmt::format("math {}{}, kv {}{}", bundle.mode == NumericMode::native ? "native" : "reference",
                     bundle.activations() == kernels::ActivationForm::f32 ? ", f32 activations" : "", cache::to_string(kv),
                     kv.start == 0 ? "" : fmt::format(" from token {}", kv.start));
}

text::TurnFormat turn_format_of(const models::ModelBundle& bundle, const text::TemplateTraits& traits) {
  if (!bundle.chat_template || !bundle.tokenizer) return {};
  text::TurnFormat format = text::turn_format_of(bundle.chat_template->source(), *bundle.tokenizer);
  if (text::asks_generically(traits)) format.tools = text::ToolFormat::generic;
  return format;
}

text::TemplateTraits traits_of(const models::ModelBundle& bundle) {
  return bundle.chat_template ? text::template_traits(*bundle.chat_template) : text::TemplateTraits{};
}

std::shared_ptr<decode::GrammarSource> grammars_of(const models::ModelBundle& bundle) {
  if (!bundle.tokenizer || bundle.end_ids.empty()) return nullptr;
  return std::make_shared<decode::GrammarSource>(*bundle.tokenizer, bundle.end_ids, bundle.vocabulary);
}

decode::SamplingParams sampling_defaults_of(const models::ModelBundle& bundle) {
  const auto file = bundle.options.path / "generation_config.json";
  if (!std::filesystem::is_regular_file(file)) return {};
  return sampling_defaults(read_json_file(file), file.string());
}

}  // namespace

std::unique_ptr<TokenSource> EngineGenerator::submit(decode::GenerationRequest request) {
  return std::make_unique<JobSource>(engine_.submit(std::move(request)));
}

std::vector<float> EngineGenerator::logits(const std::vector<int>& tokens) {
  return engine_.logits(tokens, /*stepwise=*/false);
}

decode::SamplingParams sampling_defaults(const Json& generation_config, std::string_view origin) {
  decode::SamplingParams sampling;
  const auto number = [&](const char* key, double absent) {
    const auto at = generation_config.find(key);
    if (at == generation_config.end() || at->is_null()) return absent;
    if (!at->is_number())
      fail(ErrorCode::corrupt_file, "serve", "{}: {} is {}, not a number", origin, key, dump_json(*at));
    return at->get<double>();
  };
  sampling.temperature = number("temperature", sampling.temperature);
  sampling.top_p = number("top_p", sampling.top_p);
  sampling.top_k = static_cast<int>(std::lround(number("top_k", sampling.top_k)));
  sampling.min_p = number("min_p", sampling.min_p);
  sampling.repetition_penalty = number("repetition_penalty", sampling.repetition_penalty);
  sampling.validate(/*vocabulary=*/0);
  return sampling;
}

ServedModel describe(const decode::Engine& engine, std::vector<std::string> aliases, std::int64_t created) {
  const models::ModelBundle& bundle = engine.model();
  const std::string& id = bundle.options.id;
  if (const auto slash = id.rfind('/'); slash != std::string::npos) aliases.push_back(id.substr(slash + 1));
  const text::TemplateTraits traits = traits_of(bundle);
  return {.id = id,
          .aliases = std::move(aliases),
          .created = created,
          .fingerprint = fingerprint_of(bundle),
          .architecture = bundle.config.source_model_type,
          .settings = settings_of(bundle),
          .context_length = bundle.context_length,
          .vocabulary = bundle.vocabulary,
          .tokenizer = bundle.tokenizer ? &*bundle.tokenizer : nullptr,
          .chat_template = bundle.chat_template ? &*bundle.chat_template : nullptr,
          .chat_encoder = bundle.tokenizer ? std::make_shared<text::ChatEncoder>(*bundle.tokenizer) : nullptr,
          .grammars = grammars_of(bundle),
          .turn_format = turn_format_of(bundle, traits),
          .template_traits = traits,
          .sampling = sampling_defaults_of(bundle)};
}

}  // namespace godwit::serve
