#include "cli/usage.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "cli/suggestion.h"

namespace godwit::cli {
namespace {

// The innermost subcommand that the line named: its flags are the candidates.
const CLI::App& chosen(const CLI::App& app) {
  const auto picked = app.get_subcommands();
  return picked.empty() ? app : chosen(*picked.front());
}

std::string full_name(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name() : full_name(*app.get_parent()) + " " + app.get_name();
}

std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

std::vector<std::string> verbs_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(verb->get_name());
  return names;
}

std::string unknown_word(const CLI::App& verb, std::string word) {
  const bool is_flag = word.starts_with('-');
  word = word.substr(0, word.find('='));
  const std::vector<std::string> verbs = verbs_of(verb);
  std::string text = fmt::format("unknown {} '{}'",
                                 is_flag         ? "flag"
                                 : verbs.empty() ? "argument"
                                                 : "verb",
                                 word);
  if (const auto near = nearest_word(word, is_flag ? flags_of(verb) : verbs))
    text += fmt::format("; did you mean {}?", *near);
  return text;
}

}  // namespace

std::string usage_message(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& verb = chosen(app);
  const std::vector<std::string> extra = app.remaining(true);
  const bool is_unknown =
      error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError) && !extra.empty();
  return fmt::format("{}: {}\nSee {} --help.\n", full_name(verb),
                     is_unknown ? unknown_word(verb, extra.front()) : error.what(), full_name(verb));
}

}  // namespace godwit::cli
