// Steps of one token in `reference` arithmetic without the code of the model: its graph is recorded once over
// placeholders and then replayed over each step's arrays.
//
// Inputs are the token, its position, what each layer's state holds (Step::slot_inputs) and the matrices of linear
// layers; outputs the logits and what each layer stores. Two forms: whole, with every layer's attention in the graph,
// whose shapes follow the columns; segmented, where layers whose columns grow, or whose graph depends on how many there
// are, are called between the parts that are replayed. Recurrent layers are always called. A whole graph that cannot be
// recorded is tried segmented, and what cannot be recorded at all runs as ever.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/mx.h"
#include "cache/state.h"
#include "checkpoint/weight_store.h"
#include "models/model.h"
#include "ops/recorded_graph.h"

namespace godwit::models {

struct CompiledCounts {
  std::int64_t steps = 0;     // served by a recorded graph
  std::int64_t traces = 0;    // graphs recorded
  std::int64_t failures = 0;  // forms given up
  // Of the graph that served last.
  std::size_t nodes = 0, calls = 0, constants = 0;
};

// A call of a layer's state in the middle of a graph, without its arrays.
struct LayerCall {
  enum class Kind { store_and_attend, attend, recur };
  int layer;
  Kind kind;
  cache::AttendSpec spec = {};
  bool has_sinks = false;
  bool a_log_is_rate = false;
};

class CompiledStep {
 public:
  using Weights = std::vector<checkpoint::WeightStore::Exchangeable>;
  // Only on the thread that runs the model. `graph` must outlive it.
  CompiledStep(const Model& graph, Weights weights, bool is_required, Log log);

  // Turns logits [1, vocabulary] into what is evaluated.
  using Outputs = std::function<std::vector<mx::array>(const mx::array& logits)>;
  // Plans, evaluates and publishes a step of `token`; false, with the row as it was, where no graph serves it and the
  // caller must: the first token of a row, and what could not be recorded (if required Error{unsupported}).
  bool run(const cache::StateStore& store, cache::Row& row, int token, const Outputs& outputs);

  const CompiledCounts& counts() const { return counts_; }
  const Weights& weights() const { return weights_; }
  // For tests: the next replay throws at its call `call`, or at its end where it has fewer; once.
  void fail_at(std::size_t call) { fails_at_ = call; }

 private:
  enum class Form { whole, segmented, none };
  struct Recorded {
    Form form = Form::whole;
    std::optional<ops::RecordedGraph> graph;
    std::vector<int> inside;          // layers whose state is in the graph
    std::vector<std::size_t> stored;  // how many arrays each of them leaves
    std::vector<LayerCall> calls;
  };
  static constexpr std::size_t kMostGraphs = 32;

  Recorded& recorded_for(const cache::Step& step);
  std::string weights_key() const;
  std::vector<mx::array> state_inputs(const Recorded& recorded, const cache::Step& step, const mx::array& token) const;
  void append_weights(std::vector<mx::array>& inputs) const;
  void record(Recorded& recorded, cache::Step& step);
  ops::BuiltGraph build(Recorded& recorded, cache::Step& step, const std::vector<mx::array>& inputs) const;
  void evaluate(const Recorded& recorded, cache::Step& step, int token, const Outputs& outputs);
  void give_up(Recorded& recorded, const char* reason);

  const Model& graph_;
  Weights weights_;
  bool is_required_;
  Log log_;
  int layers_;
  std::map<std::string, Recorded> recorded_;
  CompiledCounts counts_;
  std::optional<std::size_t> fails_at_;
};

}  // namespace godwit::models
