// How a profile is shown: to people in a table, to machines as JSON.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "models/profile_table.h"

namespace godwit::cli {

// Titles of the cells below.
std::vector<std::string> profile_titles();
// Id, promise in reference and in native arithmetic ("-": none), the first digits of the config's
// fingerprint.
std::vector<std::string> profile_cells(const models::ResolvedProfile& resolved);

// {id, artifact, loader, graph, loop, specialization, implementation, capabilities, config_fingerprint,
// reference: {tier, oracle, claim, figures}, native: the same and specialization, or null}; null where there is nothing to say.
Json json_of(const models::ResolvedProfile& resolved);

}  // namespace godwit::cli
