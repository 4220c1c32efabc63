#include "models/capability.h"

#include <algorithm>
#include <iterator>

namespace godwit::models {

CapabilitySet capabilities_of(const Execution& execution) {
  CapabilitySet needed = {std::string(name_of(execution.loader)), std::string(name_of(execution.loop)),
                          execution.graph + "-graph"};
  if (execution.specialization == Specialization::generated) needed.insert("generated-graph");
  return needed;
}

CapabilitySet missing_of(const CapabilitySet& wanted, const CapabilitySet& there) {
  CapabilitySet missing;
  std::ranges::set_difference(wanted, there, std::inserter(missing, missing.end()));
  return missing;
}

}  // namespace godwit::models
