// The plan of an opened decoder in `native` mode: its step recorded as a list of nodes (ops/step_plan.h), and the key
// that says which step it is.
#pragma once

#include <memory>
#include <string_view>

#include "cache/state.h"
#include "checkpoint/fingerprint.h"
#include "models/model.h"
#include "ops/step_plan.h"

namespace godwit::models {

struct DecodePlan {
  ops::StepPlan steps;
  // SHA-256 over "godwit-plan-1", a newline, what chose the graph, and a line for each node.
  checkpoint::Fingerprint key;
};

// Records a step of `graph` over rows of `store`, whatever family it is of. `chosen_by` are the lines that name what
// chose the graph: config, artifact, form of activations. No weight is read and no row is left behind. A graph that no
// list can stand for is an Error that says why: it holds a node that is not ours, or another graph for other tokens.
std::unique_ptr<const DecodePlan> record_plan(const Model& graph, const cache::StateStore& store, std::string_view chosen_by);

}  // namespace godwit::models
