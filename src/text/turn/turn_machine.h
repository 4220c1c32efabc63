// The state machine of one turn: takes from the input what is certain.
#pragma once

#include <memory>

#include "text/turn/call_reader.h"

namespace godwit::text {

class TurnMachine {
 public:
  virtual ~TurnMachine() = default;
  virtual void run(TurnInput& in, TurnOutput& out) = 0;
  virtual bool is_in_reasoning() const = 0;
};

// Reasoning and calls between markers, everything else is content. `tools` must outlive the machine; without tools
// nothing is a call.
std::unique_ptr<TurnMachine> marked_machine(const TurnFormat& format, const Tools& tools, bool in_reasoning);
// gpt-oss: every message says by its channel and recipient what it is.
std::unique_ptr<TurnMachine> harmony_machine(const TurnFormat& format, const Tools& tools, bool in_reasoning);

}  // namespace godwit::text
