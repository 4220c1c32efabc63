// Turns arrays that were built over placeholders into the entries of a RecordedGraph. Private to ops.
#pragma once

#include <map>
#include <span>
#include <string>
#include <typeindex>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ops/recorded_graph.h"

namespace godwit::ops {

class GraphRecorder {
 public:
  explicit GraphRecorder(RecordedGraph& graph) : graph_(graph) {}
  void record(const BuiltGraph& built);

 private:
  using Arrays = std::vector<mx::array>;
  using Entry = RecordedGraph::Entry;

  // Every array that the outputs and calls hang on, operands first; of siblings the first that was met.
  Arrays in_order(const BuiltGraph& built) const;
  std::span<const mx::array> operands_of(const BuiltGraph& built, const mx::array& x) const;
  void fold_constants(const BuiltGraph& built);
  void add_constant(const mx::array& x);
  void add_call(const BuiltGraph& built, std::size_t index);
  void add_node(const mx::array& x);
  // The value of an equal node before it.
  const Entry* equal_to(const Entry& entry) const;
  std::size_t value_of(const mx::array& x) const;
  std::size_t new_value() { return graph_.values_++; }

  RecordedGraph& graph_;
  std::unordered_map<std::uintptr_t, std::size_t> values_;  // by array
  std::unordered_map<std::uintptr_t, std::size_t> call_results_;
  std::unordered_set<std::uintptr_t> inputs_;
  std::vector<Arrays> call_operands_;  // with the result of the call before
  std::map<std::string, std::size_t> scalars_;
  // Single results by what decides them; indices of entries.
  std::map<std::pair<std::type_index, std::vector<std::size_t>>, std::vector<std::size_t>> nodes_;
};

}  // namespace godwit::ops
