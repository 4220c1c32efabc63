#include "decode/engine.h"

#include <random>
#include <thread>

#include "base/error.h"
#include "base/mx_error.h"
#include "decode/generation_loop.h"
#include "decode/mailbox.h"
#include "decode/prompt_cache.h"
#include "models/model_bundle.h"

namespace godwit::decode {
namespace {

std::uint64_t draw_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

}  // namespace

struct Engine::Impl {
  Log log;
  PromptCacheOptions cache_options;
  Mailbox mailbox;
  const models::ModelBundle* bundle = nullptr;  // lives on the engine thread's stack from ready to the end
  PromptCache* cache = nullptr;                 // so does this
  std::thread thread;

  void thread_main(const OpenBundle& open, std::promise<void> ready);
  void serve(const std::shared_ptr<Job::Impl>& job);
  void serve(const std::unique_ptr<Task>& task);
  void run_loop(Job::Impl& job);
  void run_choice(Job::Impl& job, const GenerationRequest& request, int choice);
};

void Engine::Impl::thread_main(const OpenBundle& open, std::promise<void> ready) {
  std::unique_ptr<models::ModelBundle> opened;
  std::unique_ptr<PromptCache> opened_cache;
  try {
    opened = translate_mx_errors("engine", open);
    bundle = opened.get();
    opened_cache = PromptCache::open(*bundle, cache_options, log);
    cache = opened_cache.get();
  } catch (...) {
    ready.set_exception(std::current_exception());
    return;
  }
  ready.set_value();
  while (const std::optional<Message> message = mailbox.take())
    std::visit([this](const auto& work) { serve(work); }, *message);
}

// The guard around one row: whatever ends this job, the next one is served.
void Engine::Impl::serve(const std::shared_ptr<Job::Impl>& job) {
  std::exception_ptr problem;
  try {
    translate_mx_errors("engine", [&] { run_loop(*job); });
  } catch (const std::exception& error) {
    log.warning("a request failed: {}", error.what());
    problem = std::current_exception();
  }
  // Handed over whole: after this line the exception belongs to the job's holder alone.
  if (problem) job->fail(std::move(problem));
}

void Engine::Impl::run_loop(Job::Impl& job) {
  GenerationRequest request = job.request;
  for (int choice = 0; choice < job.request.choices; ++choice) {
    request.choice = job.request.choice + choice;
    run_choice(job, request, choice);
  }
}

void Engine::Impl::run_choice(Job::Impl& job, const GenerationRequest& request, int choice) {
  GenerationLoop loop(*bundle, request, job.seed, cache);
  while (!loop.finished()) {
    if (mailbox.is_closed()) fail(ErrorCode::cancelled, "engine", "the engine is shutting down");
    std::optional<TokenEvent> event = job.is_cancelled(choice) ? loop.cancel() : loop.advance();
    if (!event) continue;
    event->choice = choice;
    job.push(std::move(*event), loop.timings());
  }
  loop.remember();
  const Timings& t = loop.timings();
  log.debug("prompt of {} tokens, {} of them found in the cache, answer of {}", t.prompt_tokens, t.cached_tokens,
            t.completion_tokens);
}

void Engine::Impl::serve(const std::unique_ptr<Task>& task) {
  std::exception_ptr problem;
  try {
    translate_mx_errors("engine", [&] { task->work(*bundle); });
  } catch (const std::exception&) {
    problem = std::current_exception();
  }
  if (problem) return task->done.set_exception(std::move(problem));
  task->done.set_value();
}

Engine::Engine(const models::ModelOptions& options, Log log, const PromptCacheOptions& cache)
    : Engine([options, log] { return models::ModelBundle::open(options, log); }, log, cache) {}

Engine::Engine(OpenBundle open, Log log, const PromptCacheOptions& cache) : impl_(std::make_unique<Impl>()) {
  impl_->log = std::move(log);
  impl_->cache_options = cache;
  std::promise<void> ready;
  std::future<void> opened = ready.get_future();
  impl_->thread =
      std::thread([impl = impl_.get(), open = std::move(open), ready = std::move(ready)]() mutable {
        impl->thread_main(open, std::move(ready));
      });
  try {
    opened.get();
  } catch (...) {
    impl_->thread.join();
    throw;
  }
}

Engine::~Engine() {
  const std::deque<Message> left = impl_->mailbox.close();
  const auto reason =
      std::make_exception_ptr(Error(ErrorCode::cancelled, "engine", "the engine is shutting down"));
  for (const Message& message : left) {
    if (const auto* job = std::get_if<std::shared_ptr<Job::Impl>>(&message)) {
      (*job)->fail(reason);
    } else {
      std::get<std::unique_ptr<Task>>(message)->done.set_exception(reason);
    }
  }
  impl_->thread.join();
}

const models::ModelBundle& Engine::model() const { return *impl_->bundle; }

Job Engine::submit(GenerationRequest request) {
  validate_request(model(), request);
  const std::uint64_t seed = request.sampling.seed ? *request.sampling.seed : draw_seed();
  auto job = std::make_shared<Job::Impl>(std::move(request), seed);
  impl_->mailbox.add(job, kQueueLimit);
  return Job(std::move(job));
}

void Engine::run(std::function<void(const models::ModelBundle&)> work) {
  auto task = std::make_unique<Task>();
  task->work = std::move(work);
  std::future<void> done = task->done.get_future();
  impl_->mailbox.add(std::move(task));
  done.get();
}

std::optional<cache::PrefixCacheStats> Engine::prompt_cache() {
  std::optional<cache::PrefixCacheStats> stats;
  run([&](const models::ModelBundle&) {
    if (impl_->cache) stats = impl_->cache->stats();
  });
  return stats;
}

std::vector<float> Engine::logits(const std::vector<int>& tokens, bool stepwise) {
  validate_prompt(model(), tokens, /*answer=*/0);
  std::vector<float> rows;
  run([&](const models::ModelBundle& bundle) {
    RowRunner runner(bundle);
    const std::span<const int> all(tokens);
    const std::size_t span = stepwise ? 1 : all.size();
    for (std::size_t at = 0; at < all.size(); at += span) {
      const std::vector<float> some = runner.logits(all.subspan(at, span));
      rows.insert(rows.end(), some.begin(), some.end());
    }
  });
  return rows;
}

}  // namespace godwit::decode
