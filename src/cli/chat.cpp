// godwit chat: a conversation on standard input and output. Answers go to stdout, everything else to stderr.
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "base/error.h"
#include "cli/answer.h"
#include "cli/cache_flags.h"
#include "cli/command.h"
#include "cli/conversation.h"
#include "cli/line_reader.h"
#include "cli/model_flags.h"
#include "cli/prompt.h"
#include "cli/sampling_flags.h"

namespace godwit::cli {
namespace {

constexpr const char* kHelp =
    "/reset        forget the conversation (the system message stays)\n"
    "/system TEXT  set the system message; without TEXT: none\n"
    "/help         this list\n"
    "/exit         leave (also Ctrl-D)\n"
    "Ctrl-C stops an answer; twice at the prompt it leaves.\n";

struct ChatFlags {
  ModelFlags model;
  CacheFlags cache;
  SamplingFlags sampling;
  std::string system;
};

decode::PromptCacheOptions cache_options(const ChatFlags& flags) {
  return flags.cache.options(decode::PromptCacheOptions::Use::in_native);
}

class Chat {
 public:
  Chat(const ChatFlags& flags, CommandContext& context)
      : flags_(flags),
        context_(context),
        is_terminal_(isatty(STDIN_FILENO) == 1),
        engine_(flags.model.options(context), context.log, cache_options(flags)),
        reader_(STDIN_FILENO, interrupts_),
        conversation_(flags.system) {
    static_cast<void>(engine_.model().need_chat_template());
    static_cast<void>(engine_.model().need_tokenizer());
  }

  int run() {
    tell("/help lists the commands.\n");
    std::string line;
    for (bool warned = false;;) {
      tell("> ");
      const LineReader::Event event = reader_.next(line);
      if (event == LineReader::Event::end) break;
      if (event == LineReader::Event::interrupt) {
        if (warned) return kExitInterrupted;
        tell("\n(Ctrl-C again or Ctrl-D leaves)\n");
        warned = true;
        continue;
      }
      warned = false;
      if (line == "/exit") break;
      handle(line);
    }
    return failed_ && !is_terminal_ ? kExitFailed : kExitDone;
  }

 private:
  // Hints and prompts are for people only.
  void tell(const char* text) const {
    if (is_terminal_ && context_.err_is_terminal) std::fputs(text, stderr);
  }

  void handle(const std::string& line) {
    if (line.empty()) return;
    if (!line.starts_with('/')) return answer(line);
    const std::string command = line.substr(0, line.find(' '));
    if (command == "/reset") {
      conversation_.reset();
    } else if (command == "/system") {
      conversation_.set_system(line.size() > command.size() ? line.substr(command.size() + 1) : "");
    } else if (command == "/help") {
      std::fputs(kHelp, stderr);
    } else {
      context_.log.error("unknown command {}: /help lists them", command);
      failed_ = true;
    }
  }

  // A turn that fails is taken back; the conversation goes on.
  void answer(const std::string& line) {
    conversation_.add_user(line);
    try {
      const auto& tokenizer = engine_.model().tokenizer;
      decode::GenerationRequest request = flags_.sampling.request(tokenizer ? &*tokenizer : nullptr);
      request.prompt = chat_tokens(engine_.model(), conversation_.messages());
      const Answer answer = follow(engine_, std::move(request), interrupts_,
                                   [this](std::string_view text) { context_.out.write(text); });
      context_.out.write("\n");
      conversation_.add_assistant(answer.text);
    } catch (const Error& error) {
      conversation_.drop_last();
      context_.log.error("{}", error.what());
      failed_ = true;
    }
  }

  const ChatFlags& flags_;
  CommandContext& context_;
  const bool is_terminal_;
  decode::Engine engine_;
  InterruptGuard interrupts_;  // after the engine: Ctrl-C while the model loads leaves at once
  LineReader reader_;
  Conversation conversation_;
  bool failed_ = false;
};

int run_chat(const ChatFlags& flags, CommandContext& context) {
  static_cast<void>(flags.sampling.request());  // bad flags before the model is opened
  static_cast<void>(cache_options(flags));
  return Chat(flags, context).run();
}

}  // namespace

void add_chat(CLI::App& app, CommandContext& context) {
  auto flags = std::make_shared<ChatFlags>();
  CLI::App* verb = app.add_subcommand("chat", "Talk with a model (one line of input is one turn)");
  verb->add_option("--system", flags->system, "System message");
  flags->model.add_to(*verb, /*with_chat=*/true);
  flags->cache.add_to(*verb);
  flags->sampling.add_to(*verb);
  verb->callback(
      [flags, &context] { context.action = [flags, &context] { return run_chat(*flags, context); }; });
}

}  // namespace godwit::cli
