// Ctrl-C. By default it ends the program at once with exit code 130; while an InterruptGuard lives it is only
// counted, so that an answer can be stopped and the program goes on.
#pragma once

namespace godwit::cli {

// Call once, first thing in main: SIGINT then leaves with 130, and SIGPIPE is ignored (writes report it
// instead).
void install_signal_handlers();

// At most one at a time, on the main thread.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  // Whether Ctrl-C was pressed since the last call.
  bool take();
  // While it lives, the next Ctrl-C ends the program at once again: the stop asked for by the one before may
  // have to wait for a long step of the engine.
  class Impatience {
   public:
    Impatience();
    ~Impatience();
    Impatience(const Impatience&) = delete;
    Impatience& operator=(const Impatience&) = delete;
  };

  // Becomes readable at each Ctrl-C: for poll() beside another descriptor. take() empties it.
  int descriptor() const;
};

}  // namespace godwit::cli
