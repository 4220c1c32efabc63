// godwit bench: how fast a model reads a prompt and makes tokens, as medians of several rounds in one
// process.
#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "cli/answer.h"
#include "cli/bench_batch.h"
#include "cli/bench_context.h"
#include "cli/bench_grammar.h"
#include "cli/bench_grammar_steps.h"
#include "cli/bench_load.h"
#include "cli/bench_state.h"
#include "cli/bench_step.h"
#include "cli/bench_support.h"
#include "cli/command.h"
#include "cli/model_flags.h"
#include "cli/usage.h"
#include "decode/engine.h"
#include "kernels/select.h"
#include "models/model_bundle.h"

namespace godwit::cli {
namespace {

struct BenchFlags {
  ModelFlags model;
  int prompt = 512;
  int generate = 128;
  int repeats = 3;
  std::string against;  // a second --math, measured after the first; empty: none
  bool state = false;   // what the state store costs, instead of speeds
  bool load = false;    // what opening costs, instead of speeds
  bool no_text = false;  // of that, the weights alone
  bool step = false;     // where a decode step spends its time, instead of speeds
  int context = 0;      // more than none: what a row of that many tokens adds to a step, instead of speeds
  int rows = 0;         // more than none: that many rows in each step against one alone, instead of the engine's speeds
  bool grammar = false;  // what structured output costs, instead of speeds
  bool json = false;
};

struct Speed {
  double prefill = 0, decode = 0;  // tokens per second
  int steps = 0, planned_steps = 0;
};

// "model name" of the first processor; empty where the system does not say.
std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(std::min(line.find(':') + 2, line.size()));
  return "";
}

Speed one_round(decode::Engine& engine, const BenchFlags& flags, InterruptGuard& interrupts) {
  decode::GenerationRequest request;
  request.prompt = spread_tokens(0, flags.prompt, engine.model().vocabulary);
  request.max_tokens = flags.generate;
  request.ignore_eos = true;
  request.sampling.temperature = 0;
  const Answer answer = follow(engine, std::move(request), interrupts, [](std::string_view) {});
  if (answer.finish == decode::FinishReason::cancelled) fail(ErrorCode::cancelled, "bench", "stopped");
  const decode::Timings& t = answer.timings;
  return {t.prompt_tokens / t.prompt_seconds, (t.completion_tokens - 1) / t.completion_seconds, t.steps, t.planned_steps};
}

Json machine_of(const models::ModelBundle& model) {
  return {{"cpu", processor_name()},
          {"cpus", cpu_allowance()},
          {"level", kernels::level_name(model.options.level)},
          {"threads", model.options.threads}};
}

struct Measured {
  Json machine, run;
};

// Opens the model, runs one round that is not counted (pages, buffers) and then the others.
Measured measure(const BenchFlags& flags, CommandContext& context, InterruptGuard& interrupts) {
  decode::Engine engine(flags.model.options(context), context.log);
  const models::ModelBundle& model = engine.model();
  one_round(engine, flags, interrupts);
  std::vector<double> prefill, decode;
  int steps = 0, planned_steps = 0;
  for (int round = 0; round < flags.repeats; ++round) {
    const Speed speed = one_round(engine, flags, interrupts);
    steps += speed.steps;
    planned_steps += speed.planned_steps;
    prefill.push_back(speed.prefill);
    decode.push_back(speed.decode);
  }
  Json compiled;
  engine.run([&](const models::ModelBundle& opened) { compiled = compiled_of(opened); });
  return {machine_of(model),
          {{"math", name_of(model.mode)},
           {"activations", activations_of(model)},
           {"kv", cache::to_string(model.options.kv)},
           {"kv_start", model.options.kv.start},
           {"bytes_per_token", model.store->bytes_per_token()},
           {"batch", 1},
           {"prompt", flags.prompt},
           {"generate", flags.generate},
           {"repeats", flags.repeats},
           {"specialization", specialization_of(model)},
           {"steps", steps},
           {"planned_steps", planned_steps},
           {"prefill_tok_s", median(prefill)},
           {"decode_tok_s", median(decode)},
           {"compiled", compiled},
           {"peak_bytes", peak_bytes()}}};
}

void print_run(const Json& run, CommandContext& context) {
  const bool is_f32 = run["activations"] == "f32";
  context.out.print("{}{}: prefill {:.1f} tokens/s, decode {:.1f} tokens/s, peak {:.0f} MB\n",
                    run["math"].get<std::string>(), is_f32 ? ", f32 activations" : "", run["prefill_tok_s"].get<double>(),
                    run["decode_tok_s"].get<double>(), run["peak_bytes"].get<double>() / 1e6);
}

int run_load(const BenchFlags& flags, CommandContext& context) {
  models::ModelOptions options = flags.model.options(context);
  options.with_text = !flags.no_text;
  context.out.print("{}\n", dump_json(bench_load(options, context.log), flags.json ? -1 : 2));
  return kExitDone;
}

int run_state(const BenchFlags& flags, CommandContext& context) {
  const Json report = bench_state(flags.model.options(context), {.repeats = flags.repeats}, context.log);
  context.out.print("{}\n", dump_json(report, flags.json ? -1 : 2));
  return kExitDone;
}

int run_step(const BenchFlags& flags, CommandContext& context) {
  const StepBenchOptions options{.prompt = flags.prompt, .generate = flags.generate, .repeats = flags.repeats};
  context.out.print("{}\n", dump_json(bench_step(flags.model.options(context), options, context.log), flags.json ? -1 : 2));
  return kExitDone;
}

int run_context(const BenchFlags& flags, CommandContext& context) {
  const ContextBenchOptions options{.context = flags.context, .repeats = flags.repeats};
  context.out.print("{}\n", dump_json(bench_context(flags.model.options(context), options, context.log), flags.json ? -1 : 2));
  return kExitDone;
}

int run_grammar(const BenchFlags& flags, CommandContext& context) {
  const models::ModelOptions model = flags.model.options(context);
  Json report = bench_grammar(model, context.log);
  report["steps"] = bench_grammar_steps(model, {.generate = flags.generate, .repeats = flags.repeats}, context.log);
  context.out.print("{}\n", dump_json(report, flags.json ? -1 : 2));
  return kExitDone;
}

int run_rows(const BenchFlags& flags, CommandContext& context) {
  const BatchBenchOptions options{.rows = flags.rows, .prompt = flags.prompt, .generate = flags.generate, .repeats = flags.repeats};
  context.out.print("{}\n", dump_json(bench_batch(flags.model.options(context), options, context.log), flags.json ? -1 : 2));
  return kExitDone;
}

int run_bench(BenchFlags flags, CommandContext& context) {
  if (flags.state) return run_state(flags, context);
  if (flags.load) return run_load(flags, context);
  if (flags.grammar) return run_grammar(flags, context);
  if (flags.step) return run_step(flags, context);
  if (flags.context > 0) return run_context(flags, context);
  if (flags.rows > 0) return run_rows(flags, context);
  InterruptGuard interrupts;
  std::vector<std::string> maths = {flags.model.math};
  if (!flags.against.empty()) maths.push_back(flags.against);
  Json report = {{"machine", nullptr}, {"model", flags.model.model}, {"runs", Json::array()}};
  for (const std::string& math : maths) {
    flags.model.math = math;
    Measured measured = measure(flags, context, interrupts);
    report["machine"] = std::move(measured.machine);
    if (!flags.json) print_run(measured.run, context);
    report["runs"].push_back(std::move(measured.run));
  }
  if (flags.json) context.out.print("{}\n", dump_json(report));
  return kExitDone;
}

// What to measure instead of the engine's speeds; one at most.
void add_kinds(CLI::App& verb, BenchFlags& flags) {
  CLI::Option_group& kinds = *verb.add_option_group("Instead of the speeds of one model");
  kinds.require_option(0, 1);
  kinds.add_option("--against", flags.against, "A second --math to measure in the same run")
      ->check(CLI::IsMember({"reference", "native"}));
  kinds.add_flag("--state", flags.state, "The KV state: forks, restores from disk, allocations");
  CLI::Option* load = kinds.add_flag("--load", flags.load, "Opening: memory beside the weights' bytes, seconds");
  kinds.add_flag("--step", flags.step, "Where the time of a decode step goes, beside a plain read of memory");
  kinds.add_option("--context", flags.context, "What a context of that many tokens adds to a step, beside a plain read of memory")
      ->check(CLI::Range(256, 1 << 24));
  kinds.add_option("--rows", flags.rows, "Decoding of that many rows in each step, against one alone")
      ->check(CLI::Range(1, 1024));
  kinds.add_flag("--grammar", flags.grammar, "Structured output: token masks over the model's vocabulary, and steps under a grammar");
  verb.add_flag("--no-text", flags.no_text, "With --load: leave the tokenizer and the chat template unread")->needs(load);
}

}  // namespace

void add_bench(CLI::App& app, CommandContext& context) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App* verb = app.add_subcommand("bench", "Measure prefill and decode speed");
  flags->model.add_to(*verb, /*with_chat=*/false);
  verb->add_option("--prompt", flags->prompt, "Tokens of the prompt")
      ->check(at_least(1))
      ->capture_default_str();
  verb->add_option("--generate", flags->generate, "Tokens to make, at least 2")
      ->check(CLI::Range(2, 1 << 30))
      ->capture_default_str();
  verb->add_option("--repeats", flags->repeats, "Rounds after one that is not counted; medians are reported")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  add_kinds(*verb, *flags);
  verb->add_flag("--json", flags->json, "Print one JSON object");
  verb->callback(
      [flags, &context] { context.action = [flags, &context] { return run_bench(*flags, context); }; });
}

}  // namespace godwit::cli
