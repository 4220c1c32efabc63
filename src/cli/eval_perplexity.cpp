// godwit eval perplexity: how well a model expects a text, token by token.
#include <memory>

#include "base/json.h"
#include "cli/eval.h"
#include "cli/model_flags.h"
#include "decode/engine.h"
#include "decode/evaluation.h"

namespace godwit::cli {
namespace {

EvalText read_text_of(const EvalFlags& flags, const models::ModelBundle& model) {
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

Json to_json(const EvalFlags& flags, const models::ModelBundle& model, const EvalText& text,
             const decode::Perplexity& found) {
  Json answer = eval_header(flags.model, model, text);
  answer["positions"] = found.positions();
  answer["perplexity"] = found.value();
  answer["standard_error"] = found.standard_error();
  return answer;
}

int run_perplexity(const EvalFlags& flags, CommandContext& context) {
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
      name_of(model.options.kv), arithmetic_of(model), text.windows.size(), text.size, text.prefill,
      found.positions(), found.value(), found.standard_error());
  return kExitDone;
}

}  // namespace

void add_eval_perplexity(CLI::App& eval, CommandContext& context) {
  EvalFlags::add(eval, context, "perplexity", "Measure how well a model expects a text", "the whole window",
                 run_perplexity);
}

}  // namespace godwit::cli
