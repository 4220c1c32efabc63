// Walks the graph of a step on the calling thread and the pool, without MLX's evaluator: no stream, no
// allocation once the sizes have been seen.
#pragma once

#include <map>
#include <span>
#include <string>

#include "base/aligned_buffer.h"
#include "base/mx.h"
#include "ops/native_runtime.h"

namespace godwit::ops {

// Where the time of steps went.
struct StepProfile {
  std::map<std::string, double> seconds;  // by name of the node
  int runs = 0;
};

class Executor {
 public:
  explicit Executor(NativeRuntime& runtime) : runtime_(runtime) {}

  // The values of `output`, f32 row-major, valid until the next run. Every node between it and arrays that
  // hold data already must be a NativePrimitive, else Error{internal} names the node. What a node throws
  // passes through.
  std::span<const float> run(const mx::array& output);

  // From here on runs are added to `profile`, which must outlive them; null: no more.
  void profile_into(StepProfile* profile) { profile_ = profile; }

  std::size_t held_bytes() const {
    return buffers_[0].size() + buffers_[1].size() + runtime_.scratch.held_bytes();
  }

 private:
  float* buffer(int index, std::size_t bytes);
  void run_node(const mx::array& node, const void* input, float* output);

  NativeRuntime& runtime_;
  StepProfile* profile_ = nullptr;
  AlignedBuffer buffers_[2];  // the nodes form a chain: one holds a node's input, the other its output
};

}  // namespace godwit::ops
