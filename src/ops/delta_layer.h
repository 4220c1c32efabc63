// What the gated delta branch of one layer sees during a step: where the memory of each row lies. It belongs to the
// state store; it is not a value of the graph.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace godwit::ops {

struct GatedDeltaWeights;

// A row's memory before its tokens and behind them.
struct DeltaMemory {
  const float* state;  // [value_heads, value_dim, key_dim]; null: zeros
  const float* tail;   // [kernel - 1, channels]: the newest inputs of the convolution; null: zeros
  float* next_state;   // as state; may be `state` itself
  float* next_tail;    // as tail, but never `tail` itself
};

// What moved the memory of one row during a step: enough to move it again over the first of these tokens.
struct DeltaInputs {
  std::shared_ptr<const GatedDeltaWeights> weights;
  std::vector<float> mixed, decay, update;  // as in GatedDeltaSpan
  std::int64_t tokens = 0;
};

struct DeltaRow {
  DeltaMemory memory;
  std::int64_t tokens;
  DeltaInputs* kept = nullptr;  // filled by the step where the row may go back
};

// The pointers stay valid while the step is open.
struct DeltaLayer {
  std::int64_t state_size = 0, tail_size = 0;  // elements of the memory of a row
  std::vector<DeltaRow> rows;                  // the step's tokens, row after row; none once it is over
  bool stored = false;                         // set once the rows' memories have moved
};

}  // namespace godwit::ops
