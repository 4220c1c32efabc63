#include "models/renaming.h"

#include <algorithm>
#include <utility>

namespace godwit::models {
namespace {

using checkpoint::Spelling;

// Whether `name` begins with the parts `parts`, whole.
bool begins_with(std::string_view name, std::string_view parts) {
  return name.starts_with(parts) && (name.size() == parts.size() || name[parts.size()] == '.');
}

std::string renamed(std::string_view name, const std::vector<Spelling>& spellings) {
  std::string out;
  while (!name.empty()) {
    const auto fits = [&](const Spelling& spelling) { return begins_with(name, spelling.first); };
    const auto found = std::ranges::find_if(spellings, fits);
    const std::size_t length = found != spellings.end() ? found->first.size() : std::min(name.find('.'), name.size());
    const std::string_view part = found != spellings.end() ? found->second : name.substr(0, length);
    if (!out.empty() && !part.empty()) out += '.';
    out += part;
    name.remove_prefix(std::min(name.size(), length + 1));
  }
  return out;
}

}  // namespace

std::function<std::string(std::string_view)> renaming(std::vector<Spelling> spellings) {
  if (spellings.empty()) return nullptr;
  return [spellings = std::move(spellings)](std::string_view name) { return renamed(name, spellings); };
}

}  // namespace godwit::models
