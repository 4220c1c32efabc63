// Reads the calls of one family as they arrive.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "text/turn/tool_schema.h"
#include "text/turn/turn_input.h"
#include "text/turn/turn_output.h"

namespace godwit::text {

class CallReader {
 public:
  virtual ~CallReader() = default;

  enum class Progress {
    wait,   // for more text
    done,   // behind the calls; what follows is content again
    failed  // no call stands here, and nothing was put out: the text is content
  };
  // At first `in` stands at the marker that opens calls, and that place is kept. A reader that puts out a call
  // releases it.
  virtual Progress read(TurnInput& in, TurnOutput& out) = 0;
};

using CallReaderMaker = std::function<std::unique_ptr<CallReader>(const Tools& tools)>;

// A text that may begin calls, and the readers that are tried there in turn.
struct CallOpener {
  Marker marker;
  bool only_at_start = false;  // of the answer, white space aside
  std::vector<CallReaderMaker> readers;
};

}  // namespace godwit::text
