// The engine: one thread that owns every MLX array, the state and the schedule (docs/scheduler.md). Other threads submit
// requests and hold Jobs; typed messages cross two queues. A failing request ends its own job and nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/log.h"
#include "decode/engine_options.h"
#include "decode/engine_stats.h"
#include "decode/generation.h"
#include "models/model_options.h"

namespace godwit::cache {
struct PrefixCacheStats;
}

namespace godwit::models {
class ModelBundle;
}

namespace godwit::decode {

// One request in flight, with all of its choices. The destructor cancels it. next() may throw the Error that ended it.
class Job {
 public:
  Job(Job&&) noexcept;
  Job& operator=(Job&&) noexcept;
  ~Job();

  // Blocks until the next event; nullopt once every choice has had the event that carried finish != none.
  std::optional<TokenEvent> next();
  // The same with a limit, so that a connection thread can look after its peer. `timed_out` tells the two
  // apart.
  std::optional<TokenEvent> next_for(double seconds, bool& timed_out);
  void cancel();
  void cancel(int choice);     // one choice alone; it ends with FinishReason::cancelled
  Timings timings() const;     // complete once finished
  std::uint64_t seed() const;  // the seed in use, drawn when the request had none
  bool has_begun() const;      // it has left the queue

  struct Impl;
  explicit Job(std::shared_ptr<Impl> impl);

 private:
  std::shared_ptr<Impl> impl_;
};

class Engine {
 public:
  // Opens the model on the engine thread (MLX arrays never cross threads) and returns when it is ready;
  // throws what opening threw.
  Engine(const models::ModelOptions& model, Log log, const EngineOptions& options = {});
  // The same over anything that makes a bundle (called once, on the engine thread).
  using OpenBundle = std::function<std::unique_ptr<models::ModelBundle>()>;
  Engine(OpenBundle open, Log log, const EngineOptions& options = {});
  // Ends every job that is still queued or running with Error{cancelled}.
  ~Engine();

  // The tokenizer, template, ids and limits of the model: immutable, usable from any thread.
  const models::ModelBundle& model() const;

  // Throws Error{context_overflow} ("maximum context length", both numbers), Error{context_over_budget} when the
  // request does not fit the memory by itself, Error{overloaded} when the queue is full, Error{invalid_argument} for bad
  // sampling fields or an empty prompt, and what a KV policy of its own is refused for.
  // The tokens of the prompt are computed once for all choices. They count as one in the queue, and each takes a row.
  Job submit(GenerationRequest request);

  // Runs `work` on the engine thread, between two steps, and throws what it threw. Arrays that it makes must not leave
  // it.
  void run(std::function<void(const models::ModelBundle&)> work);

  // What the engine has done and does. Waits for nothing.
  EngineStats stats() const;

  // What the prompt cache holds and has found; absent without one.
  std::optional<cache::PrefixCacheStats> prompt_cache();

  // Forgets the prompts that are kept, between two steps, and returns the bytes of memory that they took; absent without
  // a prompt cache. Rows keep the blocks that they share. `disk_too`: the whole folder, which may be shared, is emptied.
  std::optional<std::uint64_t> forget_prompts(bool disk_too);

  // Logits of a prompt, [tokens, vocabulary] f32 row-major: the whole prompt in one forward, or one token at
  // a time. Past the prompt cache: it wants them all.
  std::vector<float> logits(const std::vector<int>& tokens, bool stepwise);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace godwit::decode
