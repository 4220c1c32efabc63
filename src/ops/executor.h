// Runs the nodes of a step on the calling thread and the pool, without MLX's evaluator: no stream, no allocation
// once the sizes have been seen.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/mx.h"
#include "ops/native_runtime.h"
#include "ops/step_plan.h"

namespace godwit::ops {

// Where the time of steps went.
struct StepProfile {
  std::map<std::string, double, std::less<>> seconds;  // by name of the node
  int runs = 0;
};

// Steps that ran to their end.
struct StepCounts {
  std::int64_t steps = 0;
  std::int64_t planned = 0;  // of those, by a plan
};

class Executor {
 public:
  explicit Executor(NativeRuntime& runtime) : runtime_(runtime) {}

  // The values of `output`, f32 row-major, valid until the next run; `layers` are those of the step that it belongs
  // to. Every node between it and arrays that hold data already must be a NativePrimitive, else Error{internal} names
  // the node. What a node throws passes through.
  // `chosen` are the tokens of the step whose values are wanted, ascending; empty: all. What stands behind the last
  // layer is computed for those alone, with the bits that it would have among the others.
  std::span<const float> run(const mx::array& output, const StepLayers& layers = {}, std::span<const int> chosen = {});
  // The same values by a plan, with the same bits; none for StepOutput::state. Touches no array of MLX and, in a step
  // of sizes that were there before, no heap.
  std::span<const float> run(const StepPlan& plan, const StepInput& input, StepOutput wanted,
                             std::span<const int> chosen = {});
  // Takes the memory that the plan's buffers and tables need for steps of `tokens` tokens.
  void prepare(const StepPlan& plan, std::int64_t tokens);

  // From here on runs are added to `profile`, which must outlive them; null: no more.
  void profile_into(StepProfile* profile) { profile_ = profile; }
  const StepCounts& counts() const { return counts_; }

  std::size_t held_bytes() const {
    return buffers_[0].size() + buffers_[1].size() + rope_values_.size() + runtime_.scratch.held_bytes();
  }

 private:
  // Tokens that go on behind the first `behind` nodes.
  struct Cut {
    std::size_t behind;
    std::span<const int> tokens;  // empty: all
  };
  std::span<const float> walk(std::span<const StepNode> nodes, const void* input, std::int64_t tokens,
                              const StepLayers& layers, const Cut& cut);
  float* buffer(int index, std::int64_t elements);
  void place_tables(const StepPlan& plan, std::int64_t tokens);
  void form_tables(const StepPlan& plan, const StepInput& input);
  template <class Work>
  void timed(const char* name, Work&& work);

  NativeRuntime& runtime_;
  StepProfile* profile_ = nullptr;
  StepCounts counts_;
  AlignedBuffer buffers_[2];  // the nodes form a chain: one holds a node's input, the other its output
  AlignedBuffer rope_values_;
  std::vector<float*> rope_places_;  // by rope of a plan: the cosines, and behind them the sines
  std::vector<std::int32_t> positions_;
};

}  // namespace godwit::ops
