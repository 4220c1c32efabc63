// A native step as the list of its nodes: recorded once from the graph that MLX's arrays spell, run from then on
// without them. A node knows neither tokens nor positions nor rows, so one list serves every step of its model.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/mx.h"
#include "ops/native_branch.h"
#include "ops/native_primitive.h"

namespace godwit::ops {

// All that changes from step to step.
struct StepInput {
  std::span<const std::int32_t> tokens;  // of all rows, row after row
  std::span<const int> row_offsets;      // position of each row's first token
  std::span<const int> row_tokens;
  StepLayers layers;
};

enum class StepOutput {
  state,   // the layers' keys and values alone
  hidden,  // [tokens, hidden] behind the final norm
  logits,  // [tokens, vocabulary]
};

struct StepNode {
  const NativePrimitive* primitive;
  std::int64_t width;  // f32 elements in a token's row of its output
  int rope = -1;       // of the plan's; -1: the node forms its own table, or needs none
};

// From the array that holds data to another that is computed from it.
struct StepChain {
  const mx::array* source;
  std::vector<StepNode> nodes;
};
// Borrows the arrays behind `output`. Error{internal} naming a node that is not ours.
StepChain chain_to(const mx::array& output);
// How many of `nodes` come before the last one that reads and writes a layer, that one included.
std::size_t state_nodes_of(std::span<const StepNode> nodes);

class StepPlan {
 public:
  // The step that makes `hidden` and `logits` of `tokens`. What no list can stand for is Error{unsupported}: a graph
  // that does not begin with the tokens, or whose hidden states do not lie on the way to the logits. Throws what
  // chain_to() throws.
  StepPlan(const mx::array& tokens, const mx::array& hidden, const mx::array& logits);

  std::span<const StepNode> nodes(StepOutput wanted) const;
  // Of the nodes, those up to the last that reads and writes a layer.
  std::size_t state_nodes() const { return state_; }
  // The rotations of its nodes, equal ones once.
  const std::vector<RopePlan>& ropes() const { return ropes_; }
  // A line for each node: what it does, over which formats and shapes.
  std::string text() const;
  // Whether both do the same with the same constants.
  bool equals(const StepPlan& other) const;

 private:
  void fold_ropes();

  std::vector<std::shared_ptr<mx::Primitive>> owned_;
  std::vector<StepNode> nodes_;
  std::size_t hidden_ = 0, state_ = 0;  // nodes up to there
  std::vector<RopePlan> ropes_;
};

}  // namespace godwit::ops
