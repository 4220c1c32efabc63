#include "models/registry.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/error.h"
#include "models/families.h"

namespace godwit::models {
namespace {

using checkpoint::Spelling;

// mlx-lm's own aliases of graphs that are not here: messages name both.
constexpr std::array<Spelling, 7> kForeignAliases = {{{"llava", "mistral3"},
                                                      {"kimi_k2", "deepseek_v3"},
                                                      {"joyai_llm_flash", "deepseek_v3"},
                                                      {"qwen2_5_vl", "qwen2_vl"},
                                                      {"minimax_m2", "minimax"},
                                                      {"phi-msft", "phixtral"},
                                                      {"falcon_mamba", "mamba"}}};

// Types that are no text models, and the command for them.
constexpr std::array<Spelling, 1> kOtherCommands = {{{"whisper", "godwit transcribe"}}};

std::string shown(std::string_view model_type) {
  for (const auto& [alias, target] : kForeignAliases)
    if (alias == model_type) return fmt::format("'{}' (read as '{}')", model_type, target);
  return fmt::format("'{}'", model_type);
}

const Family* by_id(const std::vector<Family>& families, std::string_view id) {
  const auto found = std::ranges::find(families, id, &Family::id);
  return found == families.end() ? nullptr : &*found;
}

void check_families(const std::vector<Family>& families) {
  std::set<std::string_view> ids;
  for (const Family& family : families) {
    GODWIT_CHECK(!family.id.empty(), "a family with a blank id");
    GODWIT_CHECK(ids.insert(family.id).second, "two families have the id {}", family.id);
    const Family* const graph = by_id(families, graph_of(family));
    GODWIT_CHECK(graph && graph_of(*graph) == graph->id,
                 "the family {} is for the graph {}, which is not there", family.id, graph_of(family));
    GODWIT_CHECK(graph->loop == family.loop, "the family {} has the loop {}, its graph {} has {}", family.id,
                 name_of(family.loop), graph->id, name_of(graph->loop));
    GODWIT_CHECK(!(family.loop == Loop::encoder ? family.make != nullptr : family.make_encoder != nullptr),
                 "the family {} has the loop {}, and makes graphs of another", family.id, name_of(family.loop));
  }
}

checkpoint::Dialects dialects_of(const std::vector<Family>& families) {
  std::vector<const checkpoint::Dialect*> dialects;
  for (const Family& family : families) dialects.push_back(family.dialect);
  return checkpoint::Dialects(std::move(dialects));
}

std::string implementation_of(const Execution& execution) {
  if (!execution.implementation.empty()) return execution.implementation;
  return execution.specialization == Specialization::generated ? execution.graph + "-generated"
                                                               : execution.graph;
}

[[noreturn]] void refuse_axis(const Profile& profile, const Family& family, std::string_view axis,
                              std::string_view wanted, std::string_view there) {
  fail(ErrorCode::unsupported, "models", "the profile '{}' runs on the {} {}, the implementation '{}' has {}",
       profile.id, axis, wanted, family.id, there);
}

}  // namespace

std::vector<Loader> loaders_of(const Family& family) {
  if (family.dialect->gguf.empty() && !family.dialect->shares_gguf) return {Loader::safetensors};
  return {Loader::safetensors, Loader::gguf};
}

Registry Registry::builtin() {
  return Registry({
#define FAMILY(name) name,
#include "models/families.inc"
#undef FAMILY
  });
}

Registry::Registry(std::vector<Family> families) : families_(std::move(families)) {
  check_families(families_);
  dialects_ = dialects_of(families_);
}

Registry Registry::with(const Family& family) const {
  std::vector<Family> families = families_;
  families.push_back(family);
  return Registry(std::move(families));
}

std::vector<std::string> Registry::model_types() const {
  std::set<std::string> types;
  for (const Family& family : families_) {
    types.emplace(family.dialect->model_type);
    types.insert(family.dialect->aliases.begin(), family.dialect->aliases.end());
  }
  return {types.begin(), types.end()};
}

void Registry::check_type(std::string_view model_type, std::string_view origin) const {
  if (dialects_.of_type(model_type)) return;
  for (const auto& [type, command] : kOtherCommands)
    if (type == model_type)
      fail(ErrorCode::unsupported, "models", "{}: model_type '{}' is no text model; '{}' opens it", origin,
           model_type, command);
  fail(ErrorCode::unsupported, "models", "{}: no graph for model_type {}; there are: {}", origin,
       shown(model_type), fmt::join(model_types(), ", "));
}

const Family& Registry::select(const Profile& profile) const {
  const Execution& execution = profile.execution;
  const std::string id = implementation_of(execution);
  const Family* const family = by_id(families_, id);
  if (!family) {
    std::vector<std::string_view> ids;
    for (const Family& each : families_) ids.push_back(each.id);
    fail(ErrorCode::unsupported, "models",
         "the profile '{}' needs the implementation '{}', which is not there; "
         "there are: {}",
         profile.id, id, fmt::join(ids, ", "));
  }
  if (graph_of(*family) != execution.graph)
    refuse_axis(profile, *family, "graph", execution.graph, graph_of(*family));
  const std::vector<Loader> loaders = loaders_of(*family);
  if (std::ranges::find(loaders, execution.loader) == loaders.end())
    refuse_axis(profile, *family, "loader", name_of(execution.loader),
                loaders.size() > 1 ? "safetensors and gguf" : "safetensors");
  if (family->loop != execution.loop)
    refuse_axis(profile, *family, "loop", name_of(execution.loop), name_of(family->loop));
  return *family;
}

}  // namespace godwit::models
