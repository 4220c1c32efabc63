#include "models/registry.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "models/families.h"

namespace godwit::models {
namespace {

bool serves_type(const Family& family, std::string_view model_type) {
  return family.model_type == model_type ||
         std::ranges::find(family.aliases, model_type) != family.aliases.end();
}

void check_names(const std::vector<std::string>& names) {
  std::set<std::string_view> seen;
  for (const std::string& name : names) {
    GODWIT_CHECK(!name.empty(), "a family with a blank model_type");
    GODWIT_CHECK(seen.insert(name).second, "two families serve the model_type {}", name);
  }
}

}  // namespace

Registry Registry::builtin() {
  return Registry({
#define FAMILY(name) &name,
#include "models/families.inc"
#undef FAMILY
  });
}

Registry::Registry(std::vector<const Family*> families) : families_(std::move(families)) {
  check_names(model_types());
}

Registry Registry::with(const Family& family) const {
  std::vector<const Family*> families = families_;
  families.push_back(&family);
  return Registry(std::move(families));
}

std::vector<std::string> Registry::model_types() const {
  std::vector<std::string> types;
  for (const Family* family : families_) {
    types.emplace_back(family->model_type);
    types.insert(types.end(), family->aliases.begin(), family->aliases.end());
  }
  std::ranges::sort(types);
  return types;
}

const Family& Registry::find(std::string_view model_type, std::string_view origin) const {
  for (const Family* family : families_)
    if (serves_type(*family, model_type)) return *family;
  fail(ErrorCode::unsupported, "models", "{}: no graph for model_type '{}'; there are: {}", origin,
       model_type, fmt::join(model_types(), ", "));
}

}  // namespace godwit::models
