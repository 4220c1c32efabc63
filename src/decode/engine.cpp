#include "decode/engine.h"

#include <random>
#include <thread>

#include "base/error.h"
#include "base/mx_error.h"
#include "decode/mailbox.h"
#include "decode/request_check.h"
#include "decode/row_runner.h"
#include "decode/row_stores.h"
#include "decode/scheduler.h"
#include "models/model_bundle.h"

namespace godwit::decode {
namespace {

constexpr std::string_view kClosing = "the engine is shutting down";

std::uint64_t draw_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

}  // namespace

struct Engine::Impl {
  Log log;
  EngineOptions options;
  Mailbox mailbox;
  EngineCounters counters;
  // On the engine thread's stack from ready to the end.
  const models::ModelBundle* bundle = nullptr;
  RowStores* stores = nullptr;
  std::size_t row_budget = 0;
  std::thread thread;

  void thread_main(const OpenBundle& open, std::promise<void> ready);
  void serve_until_closed(Scheduler& scheduler);
  void serve(Task& task) const;
  void check(const GenerationRequest& request) const;
};

void Engine::Impl::thread_main(const OpenBundle& open, std::promise<void> ready) {
  std::unique_ptr<models::ModelBundle> opened;
  std::optional<RowStores> opened_stores;
  std::optional<Scheduler> scheduler;
  try {
    opened = translate_mx_errors("engine", open);
    bundle = opened.get();
    stores = &opened_stores.emplace(*bundle, options, log);
    row_budget = stores->row_budget();
    scheduler.emplace(*bundle, options, mailbox, *stores, counters, log);
  } catch (...) {
    ready.set_exception(std::current_exception());
    return;
  }
  ready.set_value();
  serve_until_closed(*scheduler);
  scheduler->end_all(ErrorCode::cancelled, kClosing);
}

void Engine::Impl::serve_until_closed(Scheduler& scheduler) {
  while (!mailbox.is_closed()) {
    while (const std::unique_ptr<Task> task = mailbox.take_task()) serve(*task);
    try {
      if (!scheduler.turn()) mailbox.bell()->wait(scheduler.patience());
    } catch (const std::exception& error) {  // none of one row or one step, which end alone
      log.error("a turn failed: {}", error.what());
      scheduler.end_all(ErrorCode::internal, error.what());
    }
  }
}

void Engine::Impl::serve(Task& task) const {
  std::exception_ptr problem;
  try {
    translate_mx_errors("engine", [&] { task.work(*bundle); });
  } catch (const std::exception&) {
    problem = std::current_exception();
  }
  if (problem) return task.done.set_exception(std::move(problem));
  task.done.set_value();
}

// A policy of its own is looked at over a store that nothing is ever put into.
void Engine::Impl::check(const GenerationRequest& request) const {
  validate_request(*bundle, request);
  if (!request.kv) return need_budget(*bundle, request, *bundle->store, row_budget);
  const cache::StateStore store(bundle->graph->state_needs(), *request.kv, bundle->mode);
  need_budget(*bundle, request, store, row_budget);
}

Engine::Engine(const models::ModelOptions& model, Log log, const EngineOptions& options)
    : Engine([model, log] { return models::ModelBundle::open(model, log); }, log, options) {}

Engine::Engine(OpenBundle open, Log log, const EngineOptions& options) : impl_(std::make_unique<Impl>()) {
  if (options.max_rows < 1 || options.event_limit < 1)
    fail(ErrorCode::invalid_argument, "engine", "{} rows and {} events for a reader: at least one of each is needed",
         options.max_rows, options.event_limit);
  if (options.prefill_tokens && *options.prefill_tokens < 1)
    fail(ErrorCode::invalid_argument, "engine", "{} tokens of prompts a step: at least one is needed",
         *options.prefill_tokens);
  if (options.checkpoint_every < 0 || (options.checkpoint_every > 0 && options.cache.folder.empty()))
    fail(ErrorCode::invalid_argument, "engine", "a checkpoint every {} tokens{}", options.checkpoint_every,
         options.checkpoint_every < 0 ? "" : " needs a folder of the prompt cache");
  impl_->log = std::move(log);
  impl_->options = options;
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
  const Mailbox::Left left = impl_->mailbox.close();
  const auto reason = [] { return std::make_exception_ptr(Error(ErrorCode::cancelled, "engine", kClosing)); };
  for (const auto& job : left.jobs) job->fail(reason());
  for (const auto& task : left.tasks) task->done.set_exception(reason());
  impl_->thread.join();
}

const models::ModelBundle& Engine::model() const { return *impl_->bundle; }

Job Engine::submit(GenerationRequest request) {
  impl_->check(request);
  const std::uint64_t seed = request.sampling.seed ? *request.sampling.seed : draw_seed();
  auto job = std::make_shared<Job::Impl>(std::move(request), seed, impl_->mailbox.bell());
  impl_->mailbox.add(job, impl_->options.queue_limit);
  return Job(std::move(job));
}

void Engine::run(std::function<void(const models::ModelBundle&)> work) {
  auto task = std::make_unique<Task>();
  task->work = std::move(work);
  std::future<void> done = task->done.get_future();
  impl_->mailbox.add(std::move(task));
  done.get();
}

EngineStats Engine::stats() const { return impl_->counters.snapshot(); }

std::optional<cache::PrefixCacheStats> Engine::prompt_cache() {
  std::optional<cache::PrefixCacheStats> stats;
  run([&](const models::ModelBundle&) {
    if (const auto& cache = impl_->stores->main().cache) stats = cache->stats();
  });
  return stats;
}

std::optional<std::uint64_t> Engine::forget_prompts(bool disk_too) {
  std::optional<std::uint64_t> bytes;
  run([&](const models::ModelBundle&) { bytes = impl_->stores->forget_prompts(disk_too); });
  return bytes;
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
