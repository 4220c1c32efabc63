// What the readers of calls share: they go from state to state as far as the text allows, and settle what its end leaves open.
#pragma once

#include "text/turn/call_reader.h"

namespace godwit::text {

class SteppedCalls : public CallReader {
 public:
  Progress read(TurnInput& in, TurnOutput& out) final {
    for (;;) {
      Step step = next(in, out);
      if (step == Step::wait && in.has_ended()) step = finish(in, out);
      if (step == Step::go) continue;
      return step == Step::wait ? Progress::wait : step == Step::done ? Progress::done : Progress::failed;
    }
  }

 protected:
  enum class Step { go, wait, done, failed };

  virtual Step next(TurnInput& in, TurnOutput& out) = 0;
  // The text has ended inside of the calls.
  virtual Step finish(TurnInput& in, TurnOutput& out) = 0;

  // What stands here is no call: with none before it, nothing was; else the text goes on behind the last one.
  Step give_up(TurnInput& in) const {
    if (calls_ == 0) return Step::failed;
    in.back();
    return Step::done;
  }

  int calls_ = 0;  // that were read to their end
};

}  // namespace godwit::text
