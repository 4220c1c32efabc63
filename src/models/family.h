// What one family file offers: a row of the registry.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "cache/layer_need.h"
#include "checkpoint/config.h"
#include "checkpoint/dialect.h"
#include "checkpoint/weight_scope.h"
#include "checkpoint/weight_store.h"
#include "models/encoder.h"
#include "models/execution.h"
#include "models/fidelity.h"
#include "models/model.h"

namespace godwit::models {

// Configs among a family's own of which its profile would promise too much in `reference` arithmetic, because the
// oracle cannot run them as they are: a profile of their own, L3.
struct LesserPromise {
  std::string_view id;  // behind the family's: "dense-experts" makes "qwen3_moe-dense-experts"
  Loader loader = Loader::safetensors;
  bool (*applies)(const checkpoint::Config& config);  // no two of one family and loader take the same config
  std::string_view figures;                           // how near
};

struct Family {
  std::string_view id;  // unique: "qwen3"
  // Its model types and how its files are spelled; families may share one.
  const checkpoint::Dialect* dialect;
  // Whether a config of one of those types is this family's; null: all are. Exactly one family accepts a
  // config.
  bool (*accepts)(const checkpoint::Config& config) = nullptr;
  // Tensors to leave out and to rename. Called before any tensor file is opened, so it refuses configs that
  // the graph cannot serve.
  checkpoint::WeightRules (*rules)(const checkpoint::Config& config);
  // What each layer that owns state must remember, as far as the config says it: a KV policy is refused by
  // these before any tensor file is opened. The graph's own state_needs() add only element_bytes.
  cache::StateNeeds (*needs)(const checkpoint::Config& config) = nullptr;
  // Builds the graph from the root scope. Missing tensors are left to the audit.
  std::unique_ptr<Model> (*make)(const checkpoint::WeightScope& root, const checkpoint::Config& config) = nullptr;
  // In place of the last two for a family of text encoders.
  std::unique_ptr<Encoder> (*make_encoder)(const checkpoint::WeightScope& root, const checkpoint::Config& config) = nullptr;

  // What its profiles say (profile.h). The defaults are those of a decoder that has mlx-lm's bits.
  Loop loop = Loop::autoregressive;
  Specialization specialization = Specialization::dedicated;
  Oracle oracle = Oracle::mlx_lm;                       // in `reference` arithmetic
  std::string_view figures = {};                        // empty: equal bits, L1; else how near, L3
  std::span<const LesserPromise> lesser = {};           // configs that get less
  std::string_view native_figures = {};                 // in `native`, where it serves the weights; empty: not offered
  std::span<const std::string_view> capabilities = {};  // beyond loader, loop and graph: "recurrent-state"
  // Another family's id: this is further code for that one's graph, which runs where a profile names it. It
  // has no profiles of its own.
  std::string_view graph = {};
};

// The graph of a family, its own unless it says otherwise.
constexpr std::string_view graph_of(const Family& family) {
  return family.graph.empty() ? family.id : family.graph;
}

// The family, offered in native arithmetic with what was measured for decoders over the weights it serves
// (tests/oracle/native_test.cpp).
constexpr Family measured_in_native(Family family) {
  family.native_figures = "logits at most 1.5 times as far from mlx-lm's as its own with int8 activations";
  return family;
}

// The same of a family with experts or a recurrence. Where the router's choice is near a tie, int8 activations take another
// expert, and where a recurrence gives next to nothing, its norm makes of the rounding another direction, here as in the
// yardstick: such tokens are far off in either, and not the same ones.
constexpr Family measured_in_the_median_token(Family family) {
  family.native_figures = "logits of the median token at most 1.5 times as far from mlx-lm's as its own with int8 activations";
  return family;
}

}  // namespace godwit::models
