#include <algorithm>
#include <memory>

#include "base/error.h"
#include "cli/eval.h"
#include "cli/prompt.h"
#include "cli/usage.h"
#include "decode/evaluation.h"
#include "decode/request_check.h"

namespace godwit::cli {
namespace {

struct TextTokens {
  std::vector<int> begin;  // what the tokenizer puts in front of a text; each window starts with it
  std::vector<int> text;
};

TextTokens encode(const models::ModelBundle& model, const std::string& text) {
  const text::Tokenizer& tokenizer = model.need_tokenizer();
  TextTokens tokens;
  tokens.text = tokenizer.encode(text, {.add_special_tokens = false});
  const std::vector<int> whole = tokenizer.encode(text);
  const bool has_begin = whole.size() > tokens.text.size() && tokenizer.is_special(whole.front()) &&
                         (tokens.text.empty() || tokens.text.front() != whole.front());
  if (has_begin) tokens.begin = {whole.front()};
  return tokens;
}

}  // namespace

void EvalTextFlags::add_to(CLI::App& verb) {
  CLI::Option* file = verb.add_option("--data", data, "The text to read; - is standard input");
  verb.add_option("--tokens", tokens, "Token ids in its place: 1,2,3 (needs no tokenizer)")->excludes(file);
  window_option_ =
      verb.add_option("--window", window, "Tokens that are read together; a rest that fills none is left out")
          ->check(at_least(2))
          ->capture_default_str();
  verb.add_option("--windows", most_windows, "Most windows to read (default: all)")->check(at_least(1));
}

void EvalTextFlags::add_prefill_to(CLI::App& verb, const std::string& default_prefill) {
  verb.add_option("--prefill", prefill,
                  "Tokens of a window that are read at once, the others one by one (default: " +
                      default_prefill + ")")
      ->check(at_least(0));
}

void EvalTextFlags::check() const {
  if (data.empty() && !tokens)
    fail(ErrorCode::invalid_argument, "eval", "a text is needed: --data FILE, or --tokens 1,2,3");
  if (tokens) static_cast<void>(parse_token_list(*tokens));
  if (window_option_->count() > 0 && prefill.value_or(0) > window)
    fail(ErrorCode::invalid_argument, "eval", "--prefill {} does not fit into a --window of {}", *prefill,
         window);
}

EvalText EvalTextFlags::read(const models::ModelBundle& model) const {
  const TextTokens all =
      tokens ? TextTokens{{}, parse_token_list(*tokens)} : encode(model, read_text(data));
  const bool is_chosen = window_option_->count() > 0;
  const int size = is_chosen ? window : std::min(window, model.context_length);
  if (size < 2) fail(ErrorCode::invalid_argument, "eval", "a context of {} token has no next one", size);
  EvalText text{.windows = decode::cut_windows(all.text, static_cast<std::size_t>(size), all.begin),
                .size = 0,
                .prefill = 0};
  if (text.windows.empty() || text.windows.front().size() < 2)
    fail(ErrorCode::invalid_argument, "eval", "the text has {} tokens; at least 2 are needed",
         all.begin.size() + all.text.size());
  if (most_windows)
    text.windows.resize(std::min(text.windows.size(), static_cast<std::size_t>(*most_windows)));
  for (const std::vector<int>& one : text.windows) decode::validate_prompt(model, one, /*answer=*/0);
  text.size = text.windows.front().size();
  if (prefill && static_cast<std::size_t>(*prefill) > text.size)
    fail(ErrorCode::invalid_argument, "eval", "--prefill {} does not fit into a window of {} tokens", *prefill,
         text.size);
  return text;
}

void EvalFlags::add(CLI::App& eval, CommandContext& context, const char* name, const char* description,
                    const char* default_prefill, Run run) {
  auto flags = std::make_shared<EvalFlags>();
  CLI::App* verb = eval.add_subcommand(name, description);
  flags->model.add_to(*verb, /*with_chat=*/false);
  flags->text.add_to(*verb);
  flags->text.add_prefill_to(*verb, default_prefill);
  verb->add_flag("--json", flags->json, "Print one JSON object");
  verb->callback([flags, &context, run] { context.action = [flags, &context, run] { return run(*flags, context); }; });
}

Json eval_header(const ModelFlags& flags, const models::ModelBundle& model, const EvalText& text) {
  return {{"model", flags.model},
          {"math", name_of(model.mode)},
          {"activations", activations_of(model)},
          {"kv", cache::to_string(model.options.kv)},
          {"kv_start", model.options.kv.start},
          {"window", text.size},
          {"windows", text.windows.size()},
          {"prefill", text.prefill}};
}

void require_encoding(const models::ModelBundle& model, const EvalText& text) {
  const cache::KvPolicy& kv = model.options.kv;
  if (!decode::encodes(kv)) return;
  if (static_cast<std::size_t>(kv.start) >= text.size)
    fail(ErrorCode::invalid_argument, "eval",
         "--kv-start {} lies behind the {} tokens of a window: {} would store none", kv.start, text.size,
         cache::to_string(kv));
  if (model.mode == NumericMode::reference && text.prefill == text.size)
    fail(ErrorCode::invalid_argument, "eval",
         "reference arithmetic encodes after a forward, and all {} tokens of a window are read in one: give a "
         "smaller --prefill to measure {}",
         text.size, cache::to_string(kv));
}

}  // namespace godwit::cli
