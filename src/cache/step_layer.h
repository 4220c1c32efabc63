// A layer during a Step, as the Step itself drives it. Private to cache.
#pragma once

#include "cache/state.h"

namespace godwit::cache {

class StepLayer : public LayerState {
 public:
  virtual bool stored() const = 0;     // this Step's span was handed over
  virtual bool evaluated() const = 0;  // and is in memory
  // Moves what this Step prepared into the row. Cannot fail.
  virtual void publish() noexcept = 0;
  // Undoes what this Step stored.
  virtual void abandon() = 0;
};

}  // namespace godwit::cache
