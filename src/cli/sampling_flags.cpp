#include "cli/sampling_flags.h"

#include <limits>

#include "base/error.h"

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
  verb.add_option("--seed", seed, "Repeats an answer; drawn when absent");
  verb.add_option("--stop", stop, "End the answer before this text; repeatable");
  verb.add_flag("--ignore-eos", ignore_eos, "Go on past end tokens");
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
  request.sampling.seed = seed;
  request.stop = stop;
  request.ignore_eos = ignore_eos;
  return request;
}

}  // namespace godwit::cli
