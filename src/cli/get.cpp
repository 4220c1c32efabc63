#include "cli/get.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "cli/interrupt.h"
#include "cli/progress_view.h"
#include "hub/download.h"
#include "hub/hub_paths.h"

namespace godwit::cli {
namespace {

struct GetFlags {
  std::string model, revision, cache_dir;
  std::vector<std::string> include, exclude;
  bool json = false, dry_run = false, quiet = false;
};

void write_stderr(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(STDERR_FILENO, text.data(), text.size());
    if (count <= 0) return;  // progress nobody can see is no reason to stop
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

int terminal_columns() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

// Workers log while the main thread draws: messages wait here for the next drawing, which prints them above
// the bars.
class MessageQueue {
 public:
  void push(LogLevel level, std::string_view text) {
    const std::lock_guard guard(mutex_);
    messages_.emplace_back(level, text);
  }
  void flush(const Log& log, ProgressView& view) {
    const std::lock_guard guard(mutex_);
    for (const auto& [level, text] : messages_) {
      view.clear();
      if (level == LogLevel::warning) log.warning("{}", text);
      if (level == LogLevel::info) log.info("{}", text);
    }
    messages_.clear();
  }

 private:
  std::mutex mutex_;  // guards messages_
  std::vector<std::pair<LogLevel, std::string>> messages_;
};

hub::GetRequest request_of(const GetFlags& flags) {
  const auto spec = hub::parse_repo_spec(flags.model);
  // The cache knows a few old names without an owner; no hub serves a new one, so a slip is not sent there.
  if (!spec || spec->repo.find('/') == std::string::npos)
    fail(ErrorCode::invalid_argument, "get",
         "\"{}\" is not the name of a repository: ORG/NAME[@REVISION][:FILE.gguf]", flags.model);
  if (!spec->revision.empty() && !flags.revision.empty() && spec->revision != flags.revision)
    fail(ErrorCode::invalid_argument, "get", "two revisions: \"{}\" and --revision {}", spec->revision,
         flags.revision);
  hub::GetRequest request{
      .repo = spec->repo, .choice = {flags.include, flags.exclude, spec->file}, .dry_run = flags.dry_run};
  if (!flags.revision.empty()) request.revision = flags.revision;
  if (!spec->revision.empty()) request.revision = spec->revision;
  return request;
}

Json json_of(const hub::GetResult& result) {
  Json files = Json::array();
  for (const auto& file : result.files)
    files.push_back({{"name", file.name}, {"size", file.size}, {"missing", file.missing}});
  return {{"repo", result.repo},       {"revision", result.revision},
          {"commit", result.commit},   {"path", result.snapshot.string()},
          {"size", result.size},       {"missing", result.missing},
          {"fetched", result.fetched}, {"files", files}};
}

// The plan of --dry-run as a table; else the one line that scripts want: the snapshot's folder.
void print_result(const GetFlags& flags, const hub::GetResult& result, Output& out) {
  if (flags.json) return out.print("{}\n", dump_json(json_of(result), 2));
  if (!flags.dry_run) return out.print("{}\n", result.snapshot.string());
  for (const auto& file : result.files)
    out.print("{:>10}  {}{}\n", format_bytes(file.size), file.name, file.missing == 0 ? "  (here)" : "");
  out.print("{:>10}  in {} files, {} to download, into {}\n", format_bytes(result.size), result.files.size(),
            format_bytes(result.missing), result.snapshot.string());
}

hub::GetResult download(const GetFlags& flags, const CommandContext& context) {
  hub::HubOptions options = hub::hub_options(context.environment);
  if (!flags.cache_dir.empty()) options.cache_root = flags.cache_dir;
  const auto request = request_of(flags);
  const auto style = flags.quiet               ? ProgressView::Style::none
                     : context.err_is_terminal ? ProgressView::Style::bars
                                               : ProgressView::Style::lines;
  MessageQueue messages;
  const Log log([&messages](LogLevel level, std::string_view text) { messages.push(level, text); });
  ProgressView view(style, write_stderr, terminal_columns);
  InterruptGuard interrupt;
  std::atomic<bool> is_stopped = false;
  const auto stop = [&] {
    if (interrupt.take()) is_stopped = true;  // reading the pipe is safe from any thread
    return is_stopped.load();
  };
  const auto progress = [&](const hub::GetProgress& now) {
    messages.flush(context.log, view);
    view.update(now, ProgressView::Clock::now());
  };
  hub::initialise_http();
  auto result = hub::get_repository(request, options, progress, stop, log);
  messages.flush(context.log, view);
  return result;
}

int run_get(const GetFlags& flags, CommandContext& context) {
  try {
    print_result(flags, download(flags, context), context.out);
    return kExitDone;
  } catch (const Error& e) {
    if (e.code() != ErrorCode::cancelled) throw;
    context.log.error("stopped; what has arrived is kept, the same command continues");
    return kExitInterrupted;
  }
}

}  // namespace

void add_get(CLI::App& app, CommandContext& context) {
  const auto flags = std::make_shared<GetFlags>();
  auto* get = app.add_subcommand("get", "Download a model from the hub into the local cache");
  get->add_option("model", flags->model, "ORG/NAME[@REVISION][:FILE.gguf]")->required();
  get->add_option("--revision", flags->revision, "Branch, tag or commit (default: main)");
  get->add_option("--include", flags->include, "Fetch only files that match this glob (repeatable)");
  get->add_option("--exclude", flags->exclude, "Leave out files that match this glob (repeatable)");
  get->add_option("--cache-dir", flags->cache_dir, "Cache folder (default: HF_HUB_CACHE, HF_HOME/hub, ...)");
  get->add_flag("--dry-run", flags->dry_run, "Show what would be downloaded and stop");
  get->add_flag("--json", flags->json, "Print the result as JSON");
  get->add_flag("-q,--quiet", flags->quiet, "No progress");
  get->callback(
      [flags, &context] { context.action = [flags, &context] { return run_get(*flags, context); }; });
}

}  // namespace godwit::cli
