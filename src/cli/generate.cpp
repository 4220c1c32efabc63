// godwit generate: one prompt, one answer.
#include <fmt/ranges.h>

#include <cstdio>
#include <memory>

#include "base/error.h"
#include "cli/answer.h"
#include "cli/cache_flags.h"
#include "cli/command.h"
#include "cli/model_flags.h"
#include "cli/prompt.h"
#include "cli/sampling_flags.h"

namespace godwit::cli {
namespace {

struct GenerateFlags {
  ModelFlags model;
  CacheFlags cache;
  SamplingFlags sampling;
  std::optional<std::string> prompt;
  std::string file;
  std::optional<std::string> tokens;
  std::string system;
  bool raw = false;
  int logprobs = -1;  // alternatives to report; -1: none at all
  bool json = false;
};

// What the user typed, before any model is opened.
struct TypedPrompt {
  std::vector<int> tokens;
  std::string text;
};

// Editors and echo end what they write with a newline that nobody meant as part of the prompt.
std::string without_last_newline(std::string text) {
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  return text;
}

// Errors here cost no load of a model.
void check_flags(const GenerateFlags& flags) {
  if (flags.logprobs >= 0 && !flags.json)
    fail(ErrorCode::invalid_argument, "cli", "--logprobs needs --json: the text has no place for them");
  if (flags.raw && !flags.system.empty())
    fail(ErrorCode::invalid_argument, "cli", "--system needs a chat template, and --raw turns it off");
}

TypedPrompt typed_prompt(const GenerateFlags& flags) {
  if (flags.tokens) return {parse_token_list(*flags.tokens), {}};
  if (!flags.prompt && flags.file.empty())
    fail(ErrorCode::invalid_argument, "cli",
         "a prompt is needed: -p TEXT, -p - (standard input), --file FILE or --tokens 1,2,3");
  const bool is_typed = flags.prompt && *flags.prompt != "-";
  TypedPrompt typed{
      {}, is_typed ? *flags.prompt : without_last_newline(read_text(flags.prompt.value_or(flags.file)))};
  if (typed.text.empty()) fail(ErrorCode::invalid_argument, "cli", "the prompt is empty");
  return typed;
}

std::vector<int> prompt_tokens(const GenerateFlags& flags, const TypedPrompt& typed,
                               const models::ModelBundle& model) {
  if (!typed.tokens.empty()) return typed.tokens;
  if (flags.raw || !model.chat_template) {
    if (!flags.system.empty())
      fail(ErrorCode::invalid_argument, "cli", "--system needs a chat template, and this model has none");
    return model.need_tokenizer().encode(typed.text);
  }
  Json messages = Json::array();
  if (!flags.system.empty()) messages.push_back({{"role", "system"}, {"content", flags.system}});
  messages.push_back({{"role", "user"}, {"content", typed.text}});
  return chat_tokens(model, messages);
}

void print_end(const GenerateFlags& flags, const Answer& answer, const models::ModelBundle& model,
               CommandContext& context) {
  if (flags.json) return context.out.print("{}\n", dump_json(to_json(answer, model, flags.logprobs >= 0)));
  if (!model.tokenizer) return context.out.print("{}\n", fmt::join(answer.tokens, ","));
  context.out.write("\n");
  if (context.err_is_terminal && answer.finish == decode::FinishReason::length)
    std::fputs("(the answer reached its limit: see -n and --ctx)\n", stderr);
}

int run_generate(const GenerateFlags& flags, CommandContext& context) {
  check_flags(flags);
  const TypedPrompt typed = typed_prompt(flags);
  static_cast<void>(flags.sampling.request());  // bad flags before the model is opened
  const decode::PromptCacheOptions cache = flags.cache.options(decode::PromptCacheOptions::Use::off);
  decode::Engine engine(flags.model.options(context), context.log, cache);
  const models::ModelBundle& model = engine.model();
  decode::GenerationRequest request = flags.sampling.request(model.tokenizer ? &*model.tokenizer : nullptr);
  request.logprobs = flags.logprobs >= 0;
  request.top_logprobs = std::max(flags.logprobs, 0);
  request.prompt = prompt_tokens(flags, typed, model);
  InterruptGuard interrupts;
  const bool streams = !flags.json;
  const Answer answer = follow(engine, std::move(request), interrupts, [&](std::string_view text) {
    if (streams) context.out.write(text);
  });
  print_end(flags, answer, model, context);
  return answer.finish == decode::FinishReason::cancelled ? kExitInterrupted : kExitDone;
}

}  // namespace

void add_generate(CLI::App& app, CommandContext& context) {
  auto flags = std::make_shared<GenerateFlags>();
  CLI::App* verb = app.add_subcommand("generate", "Answer one prompt");
  CLI::Option* prompt = verb->add_option("-p,--prompt", flags->prompt, "The prompt; - reads standard input");
  CLI::Option* file = verb->add_option("--file", flags->file, "Read the prompt from this file");
  CLI::Option* tokens =
      verb->add_option("--tokens", flags->tokens, "The prompt as token ids: 1,2,3 (needs no tokenizer)");
  prompt->excludes(file)->excludes(tokens);
  file->excludes(tokens);
  verb->add_option("--system", flags->system, "System message of the chat template");
  verb->add_flag("--raw", flags->raw, "Do not apply the chat template");
  flags->model.add_to(*verb, /*with_chat=*/true);
  flags->cache.add_disk_to(*verb);
  flags->sampling.add_to(*verb);
  verb->add_option("--logprobs", flags->logprobs,
                   "Report log-probabilities and this many alternatives (with --json)")
      ->check(CLI::Range(0, 20));
  verb->add_flag("--json", flags->json, "Print one JSON object instead of the text");
  verb->callback(
      [flags, &context] { context.action = [flags, &context] { return run_generate(*flags, context); }; });
}

}  // namespace godwit::cli
