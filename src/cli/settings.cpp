#include "cli/settings.h"

#include <cctype>

#include "base/error.h"

namespace godwit::cli {
namespace {

// What says how to read the line, not what to do.
bool is_setting(const CLI::Option& option) {
  const std::string name = option.get_single_name();
  return !option.get_lnames().empty() && name != "help" && name != "config" && name != "print-config";
}

bool is_secret(std::string_view name) { return name == "api-key"; }

// As if it had been on the command line, with its checks.
void set(CLI::Option& option, const std::vector<std::string>& values, std::string_view source) {
  try {
    if (option.get_expected_max() == 0 && values.size() != 1)
      fail(ErrorCode::invalid_argument, "config", "{}: --{} is true or false", source,
           option.get_single_name());
    for (const std::string& value : values) option.add_result(value);
    option.run_callback();
  } catch (const CLI::ParseError& error) {
    const std::string value = is_secret(option.get_single_name()) ? "..."
                              : values.empty()                    ? ""
                                                                  : values.front();
    fail(ErrorCode::invalid_argument, "config", "{}: \"{}\" does not fit: {}", source, value, error.what());
  }
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

// Numbers, true and false stand bare in TOML.
std::string toml_value(const CLI::Option& option) {
  const bool is_bare =
      option.get_type_name().starts_with("INT") || option.get_type_name().starts_with("FLOAT");
  if (option.get_expected_max() == 0)
    return option.count() > 0 && option.results().front() != "false" ? "true" : "false";
  const auto shown = [&](const std::string& value) {
    if (is_secret(option.get_single_name())) return std::string("\"(not shown)\"");
    return is_bare ? value : quoted(value);
  };
  if (option.count() == 0) return shown(option.get_default_str());
  if (option.get_expected_max() == 1 && option.count() == 1) return shown(option.results().front());
  std::string list;
  for (const std::string& value : option.results()) list += (list.empty() ? "" : ", ") + shown(value);
  return "[" + list + "]";
}

}  // namespace

std::string variable_of(std::string_view flag) {
  std::string name = "GODWIT_";
  for (const char c : flag)
    name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

Settings::Settings(CLI::App& verb) : verb_(verb) {
  for (CLI::Option* option : verb_.get_options())
    if (option->count() > 0) sources_[option->get_single_name()] = "flag";
}

void Settings::take(const Environment& environment) {
  for (CLI::Option* option : verb_.get_options()) {
    const std::string name = option->get_single_name();
    if (!is_setting(*option) || option->count() > 0) continue;
    const std::string variable = variable_of(name);
    const auto value = environment.get(variable);
    if (!value) continue;
    set(*option, {*value}, variable);
    sources_[name] = variable;
  }
}

void Settings::take(const ConfigTable& table, const std::filesystem::path& file, const Log& log) {
  for (const ConfigEntry& entry : table) {
    const std::string source = fmt::format("{}:{}", file.string(), entry.line);
    CLI::Option* option = verb_.get_option_no_throw("--" + entry.key);
    if (!option || !is_setting(*option)) {
      log.warning("{}: there is no setting '{}'", source, entry.key);
      continue;
    }
    const std::string name = option->get_single_name();
    if (option->count() > 0) continue;
    set(*option, entry.values, source);
    sources_[name] = source;
  }
}

std::string Settings::effective() const {
  std::string text;
  for (const CLI::Option* option : verb_.get_options()) {
    if (!is_setting(*option)) continue;
    const std::string name = option->get_single_name();
    const auto source = sources_.find(name);
    const bool is_unset =
        source == sources_.end() && option->get_expected_max() != 0 && option->get_default_str().empty();
    text += is_unset ? fmt::format("# {} is not set\n", name)
                     : fmt::format("{} = {}  # {}\n", name, toml_value(*option),
                                   source == sources_.end() ? "default" : source->second);
  }
  return text;
}

}  // namespace godwit::cli
