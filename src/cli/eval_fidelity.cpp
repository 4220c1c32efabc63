// godwit eval fidelity: what the arithmetic, the codec or quantizing at load costs, against a run of the same file
// that is nearer to exact.
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "cli/eval.h"
#include "cli/model_flags.h"
#include "decode/engine.h"
#include "decode/evaluation.h"

namespace godwit::cli {
namespace {

struct FidelityFlags {
  ModelFlags model;
  EvalTextFlags text;
  std::string against = "f32";
  bool json = false;
};

// The weights as the file has them and dense keys and values, in the arithmetic that was named.
models::ModelOptions baseline_of(models::ModelOptions options, const std::string& against) {
  const bool is_reference = against == "reference";
  options.mode = is_reference ? NumericMode::reference : NumericMode::native;
  options.activations.reset();
  if (!is_reference) options.activations = kernels::ActivationForm::f32;
  options.kv = {};
  options.quantize_on_load.reset();
  options.with_text = false;
  return options;
}

std::vector<float> logits_of(decode::Engine& engine, const std::vector<int>& window) {
  std::vector<float> logits;
  engine.run([&](const models::ModelBundle& model) { logits = decode::window_logits(model, window); });
  return logits;
}

decode::Fidelity compare(decode::Engine& wanted, decode::Engine& got, const EvalText& text) {
  decode::Fidelity found;
  for (const std::vector<int>& window : text.windows)
    found.add(logits_of(wanted, window), logits_of(got, window), window);
  return found;
}

Json to_json(const FidelityFlags& flags, const models::ModelBundle& model, const EvalText& text,
             const decode::Fidelity& found) {
  Json answer = eval_header(flags.model, model, text);
  answer["against"] = flags.against;
  answer["positions"] = found.divergence.positions();
  answer["mean_kl"] = found.divergence.mean();
  answer["max_kl"] = found.divergence.largest();
  answer["top1_agreement"] = found.divergence.top1_agreement();
  answer["perplexity"] = found.got.value();
  answer["perplexity_change"] = found.perplexity_change();
  return answer;
}

int run_fidelity(const FidelityFlags& flags, CommandContext& context) {
  flags.text.check();
  const models::ModelOptions options = flags.model.options(context);
  decode::Engine got(options, context.log);
  EvalText text = flags.text.read(got.model());
  text.prefill = text.size - 1;
  decode::Engine wanted(baseline_of(options, flags.against), context.log);
  const decode::Fidelity found = compare(wanted, got, text);
  if (flags.json) {
    context.out.print("{}\n", dump_json(to_json(flags, got.model(), text, found)));
    return kExitDone;
  }
  context.out.print(
      "{}, kv {} against {} ({} windows of {} tokens)\n"
      "positions        {}\n"
      "mean KL          {:.6g} nats\n"
      "largest KL       {:.6g} nats\n"
      "same top token   {:.2f} %\n"
      "perplexity       {:.6g}, {:+.4f} %\n",
      arithmetic_of(got.model()), name_of(got.model().options.kv), arithmetic_of(wanted.model()), text.windows.size(),
      text.size, found.divergence.positions(), found.divergence.mean(), found.divergence.largest(),
      100 * found.divergence.top1_agreement(), found.got.value(), 100 * found.perplexity_change());
  return kExitDone;
}

}  // namespace

void add_eval_fidelity(CLI::App& eval, CommandContext& context) {
  auto flags = std::make_shared<FidelityFlags>();
  CLI::App* verb = eval.add_subcommand("fidelity", "Compare a run with one of the same file that is nearer to exact");
  flags->model.add_to(*verb, /*with_chat=*/false);
  flags->text.add_to(*verb);
  verb->add_option("--against", flags->against, "f32: native with f32 activations; reference: the oracle's operations")
      ->check(CLI::IsMember({"f32", "reference"}))
      ->capture_default_str();
  verb->add_flag("--json", flags->json, "Print one JSON object");
  verb->callback([flags, &context] { context.action = [flags, &context] { return run_fidelity(*flags, context); }; });
}

}  // namespace godwit::cli
