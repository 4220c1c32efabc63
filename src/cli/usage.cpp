#include "cli/usage.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "cli/suggestion.h"

namespace godwit::cli {
namespace {

constexpr std::string_view kValueMissing = "value missing";

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

// What other programs call the same thing.
struct OtherName {
  std::string_view theirs, ours;
};
constexpr OtherName kOtherNames[] = {{"run", "generate"},
                                     {"pull", "get"},
                                     {"download", "get"},
                                     {"list", "ls"},
                                     {"help", "--help"},
                                     {"version", "--version"},
                                     {"--temperature", "--temp"},
                                     {"--n-predict", "--max-tokens"},
                                     {"--max_tokens", "--max-tokens"},
                                     {"--ctx-size", "--ctx"}};

// Only where it exists: `godwit chat run` does not mean generate.
std::optional<std::string> same_thing(std::string_view word, const std::vector<std::string>& candidates) {
  for (const auto& [theirs, ours] : kOtherNames)
    if (word == theirs && std::ranges::find(candidates, ours) != candidates.end()) return std::string(ours);
  return std::nullopt;
}

// A bare word where a verb takes none is most often the prompt or the model.
std::string flag_for_argument(const CLI::App& verb, const std::string& word) {
  const bool wants_prompt = verb.get_name() == "generate";
  const bool wants_model = verb.get_name() == "serve" || verb.get_name() == "chat";
  if (wants_prompt) return fmt::format("; the prompt goes behind -p: -p \"{}\"", word);
  return wants_model ? fmt::format("; the model goes behind -m: -m {}", word) : "";
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
  std::vector<std::string> candidates = flags_of(verb);
  candidates.insert(candidates.end(), verbs.begin(), verbs.end());
  if (const auto same = same_thing(word, candidates)) return text + fmt::format("; did you mean {}?", *same);
  if (!is_flag && verbs.empty()) return text + flag_for_argument(verb, word);
  if (const auto near = nearest_word(word, is_flag ? flags_of(verb) : verbs))
    text += fmt::format("; did you mean {}?", *near);
  return text;
}

template <typename Number>
bool is_plain(const std::string& text) {
  Number number;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error != std::errc::invalid_argument && stop == end;  // out of range: the conversion says so
}

std::string whole_number_problem(const std::string& text) {
  const std::string digits = text.starts_with('-') ? text.substr(1) : text;
  const bool is_octal = digits.size() > 1 && digits.starts_with('0');
  if (!is_plain<long long>(text) || is_octal) return fmt::format("\"{}\" is not a whole number", text);
  return "";
}

std::string int_problem(const std::string& text) {
  if (std::string problem = whole_number_problem(text); !problem.empty()) return problem;
  int number = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), number).ec == std::errc::result_out_of_range)
    return fmt::format("\"{}\" is out of range ({} at most)", text, std::numeric_limits<int>::max());
  return "";
}

// CLI11 would wrap a negative one around and cut a large one off.
std::string unsigned_problem(const std::string& text) {
  unsigned long long number;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.starts_with('-')) return fmt::format("\"{}\" is negative", text);
  if (error != std::errc::result_out_of_range) return whole_number_problem(text);
  return fmt::format("\"{}\" is larger than {}", text, std::numeric_limits<unsigned long long>::max());
}

std::string number_problem(const std::string& text) {
  return is_plain<double>(text) ? "" : fmt::format("\"{}\" is not a number", text);
}

class HelpFormatter final : public CLI::Formatter {
 public:
  std::string make_group(std::string group, bool is_positional, std::vector<const CLI::Option*> options) const override {
    if (group == kUnlisted) return "";
    return Formatter::make_group(std::move(group), is_positional, std::move(options));
  }
  // Without the empty line that follows a group which is left out.
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    std::string text = Formatter::make_help(app, std::move(name), mode);
    for (std::size_t at = 0; (at = text.find("\n\n\n", at)) != std::string::npos;) text.erase(at, 1);
    return text;
  }
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_formatter() { return std::make_shared<HelpFormatter>(); }

void take_plain_numbers_only(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    const std::string type = option->get_type_name();
    if (type.starts_with("UINT"))
      option->check(CLI::Validator([](std::string& text) { return unsigned_problem(text); }, ""));
    if (type.starts_with("INT"))  // they are all of type int
      option->check(CLI::Validator([](std::string& text) { return int_problem(text); }, ""));
    if (type.starts_with("FLOAT"))
      option->check(CLI::Validator([](std::string& text) { return number_problem(text); }, ""));
  }
  for (CLI::App* verb : app.get_subcommands([](CLI::App*) { return true; })) take_plain_numbers_only(*verb);
}

CLI::Validator at_least(int least) {
  const auto problem = [least](std::string& text) -> std::string {
    double number = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc::invalid_argument || number >= least)
      return "";  // no number: another check says so
    return fmt::format("{} is less than {}; at least {} is needed", text, least, least);
  };
  return {problem, ""};
}

void take_no_flag_as_value(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    const bool is_for_the_model =
        option->check_lname("prompt") || option->check_lname("system") || option->check_lname("stop");
    if (!option->get_type_name().starts_with("TEXT") || is_for_the_model) continue;
    option->check(CLI::Validator(
        [](std::string& text) {
          return text.starts_with("--") ? fmt::format("{} (\"{}\" is a flag)", kValueMissing, text) : "";
        },
        ""));
  }
  for (CLI::App* verb : app.get_subcommands([](CLI::App*) { return true; })) take_no_flag_as_value(*verb);
}

void take_one_value_as_it_is(CLI::App& app) {
  for (CLI::Option* option : app.get_options())
    if (!option->get_positional()) option->allow_extra_args(false);
  for (CLI::App* verb : app.get_subcommands([](CLI::App*) { return true; })) take_one_value_as_it_is(*verb);
}

std::string usage_message(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& verb = chosen(app);
  // A word that nobody knows explains more than the flag that it was meant to be.
  std::vector<std::string> extra = app.remaining(/*recurse=*/true);
  // Not when a flag was taken for a value: then the word behind it was meant for that flag.
  if (std::string_view(error.what()).find(kValueMissing) != std::string_view::npos) extra.clear();
  return fmt::format("{}: {}\nSee {} --help.\n", full_name(verb),
                     extra.empty() ? error.what() : unknown_word(verb, extra.front()), full_name(verb));
}

}  // namespace godwit::cli
