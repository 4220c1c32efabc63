// What a layer must answer, worked out from the list of tokens alone: no rows, no blocks that anyone shares.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "ops/native_runtime.h"
#include "state/setup.h"

namespace godwit::cache::state_test {

// Queries of one step over a list of tokens: query i stands at `begin` + i of it.
struct Asked {
  int layer = 0;
  std::span<const int> tokens;  // all that is stored or being stored, then those that only ask
  int begin = 0, count = 0;
  SpanKind kind = SpanKind::causal;
  std::vector<Together> together = {};
  bool encoded = false;   // what the row holds at this step
  bool is_read = false;   // every query sees what lies before `begin`, a window of it
  bool is_block = false;  // stored context and the whole span, which stays dense
};

// Whether a query sees a position: the window is exactly (query - W, query], a span that looks forward is
// seen whole.
bool sees(const Setup& setup, const Asked& asked, int query, int position);

// Bound of what f32 arithmetic may differ by: scores of up to 128 products below 3.5^2 scaled by 1/sqrt(128)
// carry 128 * 2^-24 * 128 * 0.65 / 11 = 6e-5, which e^score turns into that share of a value below 3.5,
// twice; sums over up to 400 positions add 400 * 2^-24 * 3.5 = 8e-5. A position too many or too few among 400
// moves some of the 64 or more elements by 1/400 of a value and more.
constexpr double kTolerance = 5e-4;

class Oracle {
 public:
  Oracle(ops::NativeRuntime& runtime, const Setup& setup);
  ~Oracle();

  // The bits that `native` owes: dense or encoded blocks of the whole list; the last query is asked alone.
  std::vector<float> native_bits(const Asked& asked);
  // One query in double precision over the values that the codec of the mode gives back: [heads, value_dim].
  std::vector<double> exact(const Asked& asked, int index);
  // Outputs of a gated delta layer for tokens [begin, begin + count), from one pass over the list.
  std::vector<float> recurrent_bits(const Asked& asked);

 private:
  class Stored;
  // Tokens [0, end) as the layer would hold them. Lists are kept: what agrees with one of them is not encoded
  // again.
  Stored& stored(const Asked& asked, int end);

  ops::NativeRuntime& runtime_;
  const Setup& setup_;
  std::map<std::pair<int, bool>, std::vector<std::unique_ptr<Stored>>> kept_;  // by layer and form
};

}  // namespace godwit::cache::state_test
