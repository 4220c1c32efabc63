#include "ops/executor.h"

#include <chrono>
#include <vector>

#include "base/error.h"
#include "ops/native_primitive.h"

namespace godwit::ops {
namespace {

const NativePrimitive& primitive_of(const mx::array& node) {
  const auto* native = dynamic_cast<const NativePrimitive*>(&node.primitive());
  if (native == nullptr)
    fail(ErrorCode::internal, "executor", "the native graph holds a node that is not ours: {}",
         node.primitive().name());
  return *native;
}

// The nodes from the data to `output`.
std::vector<const mx::array*> chain_to(const mx::array& output) {
  std::vector<const mx::array*> nodes;
  for (const mx::array* at = &output; at->has_primitive() && !at->is_available(); at = &at->inputs()[0]) {
    primitive_of(*at);
    nodes.push_back(at);
  }
  return {nodes.rbegin(), nodes.rend()};
}

}  // namespace

float* Executor::buffer(int index, std::size_t bytes) {
  if (buffers_[index].size() < bytes) buffers_[index] = AlignedBuffer(bytes);
  return reinterpret_cast<float*>(buffers_[index].data());
}

void Executor::run_node(const mx::array& node, const void* input, float* output) {
  const NativePrimitive& primitive = primitive_of(node);
  const NativeCall call{input, output, node.shape(0), runtime_};
  runtime_.scratch.reset();
  if (!profile_) return primitive.run(call);
  const auto begin = std::chrono::steady_clock::now();
  primitive.run(call);
  profile_->seconds[primitive.name()] += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::span<const float> Executor::run(const mx::array& output) {
  const std::vector<const mx::array*> nodes = chain_to(output);
  GODWIT_CHECK(!nodes.empty(), "nothing to run");
  const mx::array& source = nodes.front()->inputs()[0];
  GODWIT_CHECK(source.flags().row_contiguous, "the input of a step is not contiguous");
  const void* input = source.data<char>();
  int target = 0;
  for (const mx::array* node : nodes) {
    float* const out = buffer(target, node->nbytes());
    run_node(*node, input, out);
    input = out;
    target = 1 - target;
  }
  if (profile_) ++profile_->runs;
  return {static_cast<const float*>(input), output.size()};
}

}  // namespace godwit::ops
