// godwit eval kl: how far a KV policy moves the next-token distributions from those over dense keys and values.
#include <memory>

#include "base/error.h"
#include "base/json.h"
#include "cli/eval.h"
#include "cli/model_flags.h"
#include "decode/engine.h"
#include "decode/evaluation.h"

namespace godwit::cli {
namespace {

struct Comparison {
  decode::Divergence divergence;
  std::size_t bytes_per_token = 0, dense_bytes_per_token = 0;
  double ratio() const {
    return static_cast<double>(dense_bytes_per_token) / static_cast<double>(bytes_per_token);
  }
};

EvalText read_text_of(const EvalFlags& flags, const models::ModelBundle& model) {
  EvalText text = flags.text.read(model);
  text.prefill = flags.text.prefill ? static_cast<std::size_t>(*flags.text.prefill) : text.size / 2;
  if (text.prefill == text.size)
    fail(ErrorCode::invalid_argument, "eval",
         "--prefill {} is a whole window: the tokens behind it are those compared", text.prefill);
  require_encoding(model, text);
  return text;
}

Comparison compare(decode::Engine& engine, const EvalText& text) {
  Comparison found;
  engine.run([&](const models::ModelBundle& model) {
    const std::unique_ptr<cache::StateStore> dense = model.make_store({});
    for (const std::vector<int>& window : text.windows)
      decode::compare_window(model, *dense, *model.store, window, text.prefill, found.divergence);
    found.bytes_per_token = model.store->bytes_per_token();
    found.dense_bytes_per_token = dense->bytes_per_token();
  });
  return found;
}

Json to_json(const EvalFlags& flags, const models::ModelBundle& model, const EvalText& text,
             const Comparison& found) {
  Json answer = eval_header(flags.model, model, text);
  answer["positions"] = found.divergence.positions();
  answer["mean_kl"] = found.divergence.mean();
  answer["max_kl"] = found.divergence.largest();
  answer["top1_agreement"] = found.divergence.top1_agreement();
  answer["bytes_per_token"] = found.bytes_per_token;
  answer["dense_bytes_per_token"] = found.dense_bytes_per_token;
  answer["bytes_ratio"] = found.ratio();
  return answer;
}

int run_kl(const EvalFlags& flags, CommandContext& context) {
  flags.text.check();
  decode::Engine engine(flags.model.options(context), context.log);
  const models::ModelBundle& model = engine.model();
  const EvalText text = read_text_of(flags, model);
  const Comparison found = compare(engine, text);
  if (flags.json) {
    context.out.print("{}\n", dump_json(to_json(flags, model, text, found)));
    return kExitDone;
  }
  const decode::Divergence& divergence = found.divergence;
  context.out.print(
      "{} against dense ({} arithmetic, {} windows of {} tokens, {} of them read at once)\n"
      "positions        {}\n"
      "mean KL          {:.6g} nats\n"
      "largest KL       {:.6g} nats\n"
      "same top token   {:.2f} %\n"
      "bytes per token  {}, dense {} ({:.2f} times as many)\n",
      name_of(model.options.kv), arithmetic_of(model), text.windows.size(), text.size, text.prefill,
      divergence.positions(), divergence.mean(), divergence.largest(), 100 * divergence.top1_agreement(),
      found.bytes_per_token, found.dense_bytes_per_token, found.ratio());
  return kExitDone;
}

}  // namespace

void add_eval_kl(CLI::App& eval, CommandContext& context) {
  EvalFlags::add(eval, context, "kl", "Compare a KV policy with dense keys and values on a text", "half a window",
                 run_kl);
}

}  // namespace godwit::cli
