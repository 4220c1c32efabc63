// godwit eval logits: the raw logits of a prompt, for comparing with other engines bit by bit.
#include "cli/eval.h"

#include <memory>

#include "base/error.h"
#include "base/json.h"
#include "checkpoint/safetensors_writer.h"
#include "cli/model_flags.h"
#include "cli/prompt.h"
#include "decode/engine.h"
#include "models/model_bundle.h"

namespace godwit::cli {
namespace {

struct LogitsFlags {
  ModelFlags model;
  std::string tokens;
  bool stepwise = false;
  std::string output;
  bool json = false;
};

int run_logits(const LogitsFlags& flags, CommandContext& context) {
  const std::vector<int> tokens = parse_token_list(flags.tokens);
  decode::Engine engine(flags.model.options(context), context.log);
  const std::vector<float> logits = engine.logits(tokens, flags.stepwise);
  const checkpoint::TensorToWrite tensor{
      .name = "logits",
      .format = checkpoint::TensorFormat::f32,
      .shape = {tokens.size(), static_cast<std::uint64_t>(engine.model().vocabulary)},
      .bytes = std::as_bytes(std::span(logits)),
  };
  checkpoint::write_safetensors(flags.output, {&tensor, 1});
  if (flags.json) context.out.print("{}\n", dump_json(Json{{"path", flags.output}, {"shape", tensor.shape}}));
  return kExitDone;
}

void add_logits(CLI::App& eval, CommandContext& context) {
  auto flags = std::make_shared<LogitsFlags>();
  CLI::App* verb = eval.add_subcommand("logits", "Write the logits of a prompt, f32 [tokens, vocabulary]");
  flags->model.add_to(*verb, /*with_chat=*/false);
  verb->add_option("--tokens", flags->tokens, "The prompt as token ids: 1,2,3")->required();
  verb->add_flag("--stepwise", flags->stepwise, "One token at a time instead of one forward");
  verb->add_option("-o,--output", flags->output, "The .safetensors file to write")->required();
  verb->add_flag("--json", flags->json, "Print path and shape as JSON");
  verb->callback(
      [flags, &context] { context.action = [flags, &context] { return run_logits(*flags, context); }; });
}

}  // namespace

void add_eval(CLI::App& app, CommandContext& context) {
  CLI::App* verb = app.add_subcommand("eval", "Measure a model");
  add_logits(*verb, context);
  add_eval_fidelity(*verb, context);
  add_eval_kl(*verb, context);
  add_eval_perplexity(*verb, context);
  verb->require_subcommand(1);
}

}  // namespace godwit::cli
