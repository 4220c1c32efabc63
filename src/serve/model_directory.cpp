#include "serve/model_directory.h"

#include <fmt/ranges.h>

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

std::shared_ptr<const LoadedModel> SingleModel::open(std::string_view name, const std::function<void()>&) {
  if (!is_any_model(name) && !loaded_.model.is_named(name)) unknown_model(name, list());
  return std::make_shared<LoadedModel>(loaded_);
}

std::vector<ModelEntry> SingleModel::list() const {
  const ServedModel& model = loaded_.model;
  return {{.id = model.id,
           .aliases = model.aliases,
           .created = model.created,
           .is_loaded = true,
           .context_length = model.context_length,
           .vocabulary = model.vocabulary}};
}

}  // namespace godwit::serve
