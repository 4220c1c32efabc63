#include "serve/model_directory.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "serve/json_fields.h"
#include "serve/request_error.h"

namespace godwit::serve {

bool is_any_model(std::string_view name) {
  return name.empty() || name == "default" || name.starts_with("gpt-") || name.starts_with("claude-");
}

void unknown_model(std::string_view name, const std::vector<ModelEntry>& known) {
  std::vector<std::string> names;
  for (const ModelEntry& entry : known) {
    names.push_back(entry.id);
    names.insert(names.end(), entry.aliases.begin(), entry.aliases.end());
  }
  throw RequestError(
      ErrorCode::not_found,
      fmt::format("the model '{}' is not served here; there is: {}", name.substr(0, 200), fmt::join(names, ", ")),
      {.param = "model", .code = "model_not_found"});
}

std::string model_name(const Json& body) { return JsonFields(body).string("model").value_or(""); }

bool ModelDirectory::unload(std::string_view name) {
  const std::vector<ModelEntry> known = list();
  for (const ModelEntry& entry : known)
    if (entry.is_named(name)) return false;
  unknown_model(name, known);
}

bool ModelEntry::is_named(std::string_view name) const {
  return name == id || std::ranges::find(aliases, name) != aliases.end();
}

std::shared_ptr<const LoadedModel> SingleModel::open(std::string_view name, const std::function<void()>&) {
  if (!is_any_model(name) && !loaded_.model.is_named(name)) unknown_model(name, list());
  return std::make_shared<LoadedModel>(loaded_);
}

ModelEntry entry_of(const LoadedModel& loaded) {
  const ServedModel& model = loaded.model;
  ModelEntry entry{.id = model.id,
                   .aliases = model.aliases,
                   .created = model.created,
                   .is_loaded = true,
                   .context_length = model.context_length,
                   .vocabulary = model.vocabulary,
                   .architecture = model.architecture,
                   .settings = model.settings,
                   .engine = loaded.generator.stats()};
  if (model.tokenizer && model.generates) entry.capabilities.emplace_back("completion");
  if (model.chat_template) entry.capabilities.emplace_back("chat");
  if (model.turn_format.tools != text::ToolFormat::none) entry.capabilities.emplace_back("tools");
  if (!model.turn_format.reasoning_open.empty()) entry.capabilities.emplace_back("reasoning");
  if (loaded.embedder) entry.capabilities.emplace_back("embedding");
  return entry;
}

std::vector<ModelEntry> SingleModel::list() const { return {entry_of(loaded_)}; }

}  // namespace godwit::serve
