#include "serve/anthropic_models.h"

#include "serve/ollama_json.h"

namespace godwit::serve {

Json anthropic_model_json(const ModelEntry& entry, const std::string& name) {
  return {{"type", "model"}, {"id", name}, {"display_name", name}, {"created_at", rfc3339(entry.created)}};
}

Json anthropic_model_list(const std::vector<ModelEntry>& models) {
  Json data = Json::array();
  for (const ModelEntry& entry : models) {
    data.push_back(anthropic_model_json(entry, entry.id));
    for (const std::string& alias : entry.aliases) data.push_back(anthropic_model_json(entry, alias));
  }
  const Json first = data.empty() ? Json(nullptr) : data.front()["id"];
  const Json last = data.empty() ? Json(nullptr) : data.back()["id"];
  return {{"data", std::move(data)}, {"has_more", false}, {"first_id", first}, {"last_id", last}};
}

}  // namespace godwit::serve
