// What serve needs of an engine: the seam that unit tests fill with scripted tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "decode/engine_stats.h"
#include "decode/generation.h"

namespace godwit::serve {

// One request in flight, with all of its choices; the destructor cancels it.
class TokenSource {
 public:
  virtual ~TokenSource() = default;
  // As decode::Job: nullopt with timed_out unset once every choice has had its last event.
  virtual std::optional<decode::TokenEvent> next_for(double seconds, bool& timed_out) = 0;
  virtual void cancel(int choice) = 0;  // ends one choice, with FinishReason::cancelled
  virtual decode::Timings timings() const = 0;
  virtual std::uint64_t seed() const = 0;  // the one in use, drawn when the request had none
  virtual bool has_begun() const { return true; }  // it has left the queue
};

class Generator {
 public:
  virtual ~Generator() = default;
  // As decode::Engine::submit.
  virtual std::unique_ptr<TokenSource> submit(decode::GenerationRequest request) = 0;
  // [tokens, vocabulary] f32: the whole prompt in one forward.
  virtual std::vector<float> logits(const std::vector<int>& tokens) = 0;
  // Waits for nothing; absent where there is no engine behind it.
  virtual std::optional<decode::EngineStats> stats() const { return std::nullopt; }
  // Forgets the prompts that are kept, and returns the bytes of memory that they took; absent: none are kept. Answers
  // that are being made go on undisturbed.
  virtual std::optional<std::uint64_t> forget_prompts(bool /*disk_too*/) { return std::nullopt; }
};

}  // namespace godwit::serve
