// The program: environment, log, the table of verbs, and the one place that turns an Error into an exit code.
#include <fcntl.h>
#include <fmt/format.h>
#include <mlx/version.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "base/error.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/usage.h"
#include "cli/verbs.h"

extern char** environ;

namespace godwit::cli {
namespace {

Environment process_environment() {
  std::map<std::string, std::string> values;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos) values[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return Environment(std::move(values));
}

// Errors are always shown, warnings to people, the rest when asked for.
Log stderr_log(bool is_terminal, const bool& verbose) {
  return Log([is_terminal, &verbose](LogLevel level, std::string_view message) {
    const bool shown = level == LogLevel::error || verbose || (level == LogLevel::warning && is_terminal);
    if (!shown) return;
    static constexpr const char* kNames[] = {"debug", "info", "warning", "error"};
    const std::string line = fmt::format("godwit: {}: {}\n", kNames[static_cast<int>(level)],
                                         without_control_characters(std::string(message), "\n\t"));
    std::fwrite(line.data(), 1, line.size(), stderr);
  });
}

int exit_code(ErrorCode code) {
  if (code == ErrorCode::invalid_argument) return kExitUsage;
  if (code == ErrorCode::cancelled) return kExitInterrupted;
  return kExitFailed;
}

int parse_and_run(CLI::App& app, CommandContext& context, int argc, const char* const* argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    context.out.write(app.help());
    return kExitDone;
  } catch (const CLI::CallForVersion& version) {
    context.out.print("{}\n", version.what());
    return kExitDone;
  } catch (const CLI::ParseError& error) {
    const std::string message = usage_message(app, error);
    std::fwrite(message.data(), 1, message.size(), stderr);
    return kExitUsage;
  }
  if (!context.action) {
    context.out.write(app.help());
    return kExitDone;
  }
  return context.action();
}

// A descriptor that the caller closed would go to the next file opened, and answers would be written into it.
// In its place: an end of input to read, and for output something that refuses to be written.
void keep_standard_descriptors() {
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor)
    if (fcntl(descriptor, F_GETFD) == -1)
      static_cast<void>(open("/dev/null", O_RDONLY));  // takes the lowest number
}

int run(int argc, const char* const* argv) {
  keep_standard_descriptors();
  install_signal_handlers();
  Output out(STDOUT_FILENO);
  const bool err_is_terminal = isatty(STDERR_FILENO) == 1;
  bool verbose = false;
  CommandContext context{
      process_environment(), stderr_log(err_is_terminal, verbose), out, err_is_terminal, {}, GODWIT_VERSION};

  CLI::App app("Godwit: local inference for open language models", "godwit");
  app.formatter(help_formatter());
  app.get_formatter()->column_width(32);  // verbs take it over; the longest flags of a number fit one line
  app.set_version_flag("--version", fmt::format("godwit {} (MLX {})", GODWIT_VERSION, mlx::core::version()));
  app.fallthrough();  // the program's own flags may follow the verb
  app.add_flag("-v,--verbose", verbose, "Log everything to standard error");
  for (const AddVerb add : verbs()) add(app, context);
  take_plain_numbers_only(app);
  take_no_flag_as_value(app);
  take_one_value_as_it_is(app);

  try {
    return parse_and_run(app, context, argc, argv);
  } catch (const OutputClosed&) {
    return kExitFailed;
  } catch (const Error& error) {
    context.log.error("{}", error.what());
    return exit_code(error.code());
  } catch (const std::exception& error) {
    context.log.error("{}", error.what());
    return kExitFailed;
  }
}

}  // namespace
}  // namespace godwit::cli

int main(int argc, char** argv) { return godwit::cli::run(argc, argv); }
