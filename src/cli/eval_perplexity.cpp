// godwit eval perplexity: how well a model expects a text, token by token.
#include <memory>

#include "base/json.h"
#include "cli/eval.h"
#include "cli/model_flags.h"
#include "decode/engine.h"
#include "decode/evaluation.h"

namespace godwit::cli {
namespace {

struct PerplexityFlags {
  ModelFlags model;
  EvalTextFlags text;
  bool json = false;
};

EvalText read_text_of(const PerplexityFlags& flags, const models::ModelBundle& model) {
  EvalText text = flags.text.read(model);
  text.prefill = flags.text.prefill ? static_cast<std::size_t>(*flags.text.prefill) : text.size;
  require_encoding(model, text);
  return text;
}

decode::Perplexity score(decode::Engine& engine, const EvalText& text) {
  decode::Perplexity perplexity;
  engine.run([&](const models::ModelBundle& model) {
    for (const std::vector<int>& window : text.windows)
      decode::score_window(model, *model.store, window, text.prefill, perplexity);
  });
  return perplexity;
}

Json to_json(const PerplexityFlags& flags, const models::ModelBundle& model, const EvalText& text,
             const decode::Perplexity& found) {
  return {{"model", flags.model.model},
          {"math", name_of(model.mode)},
          {"kv", cache::to_string(model.options.kv)},
          {"kv_start", model.options.kv.start},
          {"window", text.size},
          {"windows", text.windows.size()},
          {"prefill", text.prefill},
          {"positions", found.positions()},
          {"perplexity", found.value()},
          {"standard_error", found.standard_error()}};
}

int run_perplexity(const PerplexityFlags& flags, CommandContext& context) {
  flags.text.check();
  decode::Engine engine(flags.model.options(context), context.log);
  const models::ModelBundle& model = engine.model();
  const EvalText text = read_text_of(flags, model);
  const decode::Perplexity found = score(engine, text);
  if (flags.json) {
    context.out.print("{}\n", dump_json(to_json(flags, model, text, found)));
    return kExitDone;
  }
  context.out.print(
      "kv {} ({} arithmetic, {} windows of {} tokens, {} of them read at once)\n"
      "positions   {}\n"
      "perplexity  {:.6g} ± {:.2g}\n",
      name_of(model.options.kv), name_of(model.mode), text.windows.size(), text.size, text.prefill,
      found.positions(), found.value(), found.standard_error());
  return kExitDone;
}

}  // namespace

void add_eval_perplexity(CLI::App& eval, CommandContext& context) {
  auto flags = std::make_shared<PerplexityFlags>();
  CLI::App* verb = eval.add_subcommand("perplexity", "Measure how well a model expects a text");
  flags->model.add_to(*verb, /*with_chat=*/false);
  flags->text.add_to(*verb, "the whole window");
  verb->add_flag("--json", flags->json, "Print one JSON object");
  verb->callback(
      [flags, &context] { context.action = [flags, &context] { return run_perplexity(*flags, context); }; });
}

}  // namespace godwit::cli
