#include "cli/sampling_flags.h"

#include <limits>

#include "base/error.h"
#include "cli/usage.h"
#include "decode/sampling_text.h"

namespace godwit::cli {

void SamplingFlags::add_to(CLI::App& verb) {
  verb.add_option("-n,--max-tokens", max_tokens, "Most tokens to make; -1: to the end of the context")
      ->capture_default_str();
  verb.add_option("--temp", params.temperature, "Temperature; 0 takes the likeliest token")
      ->capture_default_str();
  verb.add_option("--top-k", params.top_k, "Keep the k likeliest tokens; 0: all")->capture_default_str();
  verb.add_option("--top-p", params.top_p, "Keep the likeliest tokens that add up to p")
      ->capture_default_str();
  verb.add_option("--min-p", params.min_p, "Keep tokens of at least this share of the likeliest")
      ->capture_default_str();
  verb.add_option("--xtc-probability", params.xtc_probability, "How often to exclude top choices")
      ->capture_default_str();
  verb.add_option("--xtc-threshold", params.xtc_threshold, "Probability that makes a top choice")
      ->capture_default_str();
  verb.add_option("--repetition-penalty", params.repetition_penalty, "Divide seen tokens' logits; 1: off")
      ->capture_default_str();
  verb.add_option("--presence-penalty", params.presence_penalty, "Subtracted once for a seen token")
      ->capture_default_str();
  verb.add_option("--frequency-penalty", params.frequency_penalty, "Subtracted for each time it was seen")
      ->capture_default_str();
  verb.add_option("--penalty-window", params.penalty_window, "Newest tokens the penalties see; -1: all")
      ->capture_default_str();
  add_rare(verb);
  verb.add_option("--seed", seed, "Repeats an answer; drawn when absent");
  verb.add_option("--stop", stop, "End the answer before this text; repeatable");
  verb.add_flag("--ignore-eos", ignore_eos, "Go on past end tokens");
}

// Not in --help, which is to fit a screen: docs/sampling.md has them.
void SamplingFlags::add_rare(CLI::App& verb) {
  const auto add = [&](const char* name, auto& value, const char* what) {
    verb.add_option(name, value, what)->group(kUnlisted)->capture_default_str();
  };
  add("--typical-p", params.typical_p, "Keep locally typical tokens that add up to p; 1: off");
  add("--top-n-sigma", params.top_n_sigma, "Keep logits within n standard deviations of the largest; -1: off");
  add("--dynatemp-range", params.dynatemp_range, "Move the temperature by up to this much with the entropy; 0: off");
  add("--dynatemp-exponent", params.dynatemp_exponent, "How the entropy moves it");
  add("--dry-multiplier", params.dry_multiplier, "Subtracted where a run would be repeated; 0: off");
  add("--dry-base", params.dry_base, "Factor for each more token of the run");
  add("--dry-allowed-length", params.dry_allowed_length, "Runs up to this length may be repeated");
  add("--dry-penalty-last-n", params.dry_window, "Newest tokens DRY looks at; -1: all");
  add("--mirostat", params.mirostat, "1 or 2: hold the surprise in place of what truncates; 0: off");
  add("--mirostat-tau", params.mirostat_tau, "The surprise to hold, in bits");
  add("--mirostat-eta", params.mirostat_eta, "How fast its bound learns");
  verb.add_option("--samplers", samplers, "Order of the samplers: llamacpp, mlx-lm, vllm, or names between commas")
      ->group(kUnlisted);
}

decode::GenerationRequest SamplingFlags::request() const {
  // The model's width is not known yet; the engine checks again. No flag sets a bias.
  if (max_tokens < -1)
    fail(ErrorCode::invalid_argument, "cli",
         "max_tokens is {}: at least 0 is needed, or -1 for the rest of the context", max_tokens);
  params.validate(std::numeric_limits<int>::max());
  decode::GenerationRequest request;
  request.max_tokens = max_tokens;
  request.sampling = params;
  if (samplers.find(',') != std::string::npos)
    request.sampling.order = decode::sampler_order(CLI::detail::split(samplers, ','));
  else if (!samplers.empty())
    request.sampling.order = decode::sampler_preset(samplers);
  request.sampling.seed = seed;
  request.stop = stop;
  request.ignore_eos = ignore_eos;
  return request;
}

decode::GenerationRequest SamplingFlags::request(const text::Tokenizer* tokenizer) const {
  decode::GenerationRequest made = request();
  if (tokenizer && params.dry_multiplier > 0)
    made.sampling.dry_breakers = decode::tokens_holding(*tokenizer, decode::default_dry_breakers());
  return made;
}

}  // namespace godwit::cli
