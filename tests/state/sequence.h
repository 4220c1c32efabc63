// Sequences of operations that RapidCheck makes and shrinks.
#pragma once

#include <rapidcheck.h>

#include <iosfwd>
#include <string>
#include <vector>

#include "state/world.h"

namespace godwit::cache::state_test {

// Its numbers are taken modulo what there is, so that any sublist of operations is a sequence too.
struct Op {
  int what = 0, a = 0, b = 0, c = 0;
};
std::ostream& operator<<(std::ostream& out, const Op& op);

struct Sequence {
  int layers = 0, start = 0;
  bool has_cap = false, has_sinks = false, has_disk = false;
  std::vector<Op> ops;
};
std::ostream& operator<<(std::ostream& out, const Sequence& sequence);

rc::Gen<Sequence> any_sequence(NumericMode mode);

// Throws Broken where store and model part.
void run_sequence(NumericMode mode, const Pair& pair, const Sequence& sequence);

// At least `sequences` of them in all, equally many over every pair. Prints the seed; RC_PARAMS="seed=N" runs
// the same again. A failure is a failure of the running test, with the shortest sequence that RapidCheck
// finds.
void check_sequences(NumericMode mode, const std::vector<Pair>& pairs, int sequences);

}  // namespace godwit::cache::state_test
