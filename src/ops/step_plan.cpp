#include "ops/step_plan.h"

#include <algorithm>

#include "base/error.h"

namespace godwit::ops {
namespace {

const NativePrimitive& primitive_of(const mx::array& node) {
  const auto* native = dynamic_cast<const NativePrimitive*>(&node.primitive());
  if (native == nullptr)
    fail(ErrorCode::internal, "executor", "the native graph holds a node that is not ours: {}",
         node.primitive().name());
  return *native;
}

std::vector<const mx::array*> arrays_to(const mx::array& output) {
  std::vector<const mx::array*> arrays;
  for (const mx::array* at = &output; at->has_primitive() && !at->is_available(); at = &at->inputs()[0]) {
    primitive_of(*at);
    arrays.push_back(at);
  }
  std::ranges::reverse(arrays);
  return arrays;
}

bool do_the_same(const StepNode& a, const StepNode& b) {
  return a.width == b.width && std::string_view(a.primitive->name()) == b.primitive->name() &&
         a.primitive->constants() == b.primitive->constants() && a.primitive->layer() == b.primitive->layer();
}

}  // namespace

StepChain chain_to(const mx::array& output) {
  const std::vector<const mx::array*> arrays = arrays_to(output);
  GODWIT_CHECK(!arrays.empty(), "nothing to run");
  StepChain chain{&arrays.front()->inputs()[0], {}};
  chain.nodes.reserve(arrays.size());
  for (const mx::array* array : arrays) chain.nodes.push_back({&primitive_of(*array), array->shape(1)});
  return chain;
}

std::size_t state_nodes_of(std::span<const StepNode> nodes) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (nodes[i].primitive->layer() >= 0) count = i + 1;
  return count;
}

StepPlan::StepPlan(const mx::array& tokens, const mx::array& hidden, const mx::array& logits)
    : nodes_(chain_to(logits).nodes) {
  const std::vector<const mx::array*> arrays = arrays_to(logits);
  if (arrays.front()->inputs()[0].id() != tokens.id())
    fail(ErrorCode::unsupported, "plan", "the graph of a step does not begin with its tokens");
  const auto at = std::ranges::find(arrays, hidden.id(), &mx::array::id);
  if (at == arrays.end())
    fail(ErrorCode::unsupported, "plan", "the hidden states of a step do not lie on the way to its logits");
  hidden_ = static_cast<std::size_t>(at - arrays.begin()) + 1;
  for (const mx::array* array : arrays) owned_.push_back(array->primitive_ptr());
  state_ = state_nodes_of(nodes_);
  fold_ropes();
}

void StepPlan::fold_ropes() {
  for (StepNode& node : nodes_) {
    const RopePlan* rope = node.primitive->rope();
    if (rope == nullptr) continue;
    const auto known = std::ranges::find(ropes_, *rope);
    node.rope = static_cast<int>(known - ropes_.begin());
    if (known == ropes_.end()) ropes_.push_back(*rope);
  }
}

std::span<const StepNode> StepPlan::nodes(StepOutput wanted) const {
  const std::span<const StepNode> all(nodes_);
  if (wanted == StepOutput::logits) return all;
  return all.first(wanted == StepOutput::hidden ? hidden_ : state_);
}

std::string StepPlan::text() const {
  std::string all;
  for (const StepNode& node : nodes_) all += node.primitive->text() + "\n";
  return all;
}

bool StepPlan::equals(const StepPlan& other) const {
  return hidden_ == other.hidden_ && std::ranges::equal(nodes_, other.nodes_, do_the_same);
}

}  // namespace godwit::ops
