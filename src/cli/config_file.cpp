#include "cli/config_file.h"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <fstream>
#include <sstream>

#include "base/error.h"

namespace godwit::cli {
namespace {

int line_of(const toml::node& node) { return static_cast<int>(node.source().begin.line); }

class Reader {
 public:
  explicit Reader(const std::filesystem::path& path) { file_.path = path; }

  ConfigFile read(const toml::table& root) {
    for (const auto& [key, node] : root) {
      const std::string name(key.str());
      if (name == "models" && node.is_array()) {
        for (const toml::node& model : *node.as_array()) file_.models.push_back(table_of(model, "models"));
      } else if (name == "serve" && node.is_table()) {
        for (ConfigEntry& entry : table_of(node, name)) file_.settings.push_back(std::move(entry));
      } else if (node.is_table() || node.is_array_of_tables()) {
        file_.others.push_back({name, {}, line_of(node)});
      } else {
        file_.settings.push_back(entry_of(name, node));
      }
    }
    return std::move(file_);
  }

 private:
  ConfigTable table_of(const toml::node& node, std::string_view name) const {
    const toml::table* table = node.as_table();
    if (!table) refuse(node, fmt::format("{} must be a table", name));
    ConfigTable entries;
    for (const auto& [key, value] : *table) entries.push_back(entry_of(std::string(key.str()), value));
    return entries;
  }

  ConfigEntry entry_of(std::string key, const toml::node& node) const {
    ConfigEntry entry{std::move(key), {}, line_of(node)};
    if (const toml::array* array = node.as_array()) {
      for (const toml::node& value : *array) entry.values.push_back(text_of(entry.key, value));
    } else {
      entry.values.push_back(text_of(entry.key, node));
    }
    return entry;
  }

  // As it would be written on the command line.
  std::string text_of(std::string_view key, const toml::node& node) const {
    if (const auto* text = node.as_string()) return text->get();
    if (const auto* number = node.as_integer()) return fmt::format("{}", number->get());
    if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
    if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
    refuse(node, fmt::format("{} must be a string, a number, true or false", key));
  }

  [[noreturn]] void refuse(const toml::node& node, std::string_view what) const {
    fail(ErrorCode::invalid_argument, "config", "{}:{}: {}", file_.path.string(), line_of(node), what);
  }

  ConfigFile file_;
};

}  // namespace

ConfigFile read_config_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  if (!file || !(text << file.rdbuf()))
    fail(ErrorCode::io, "config", "{}: cannot read the file", path.string());
  try {
    return Reader(path).read(toml::parse(text.view(), path.string()));
  } catch (const toml::parse_error& error) {
    fail(ErrorCode::invalid_argument, "config", "{}:{}: {}", path.string(), error.source().begin.line,
         error.description());
  }
}

}  // namespace godwit::cli
