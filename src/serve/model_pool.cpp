#include "serve/model_pool.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <list>
#include <mutex>
#include <set>
#include <thread>

#include "serve/request_error.h"

namespace godwit::serve {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kTick = std::chrono::milliseconds(50);    // between two looks after whoever waits
constexpr auto kSweep = std::chrono::milliseconds(200);  // between two looks for idle models

struct LoadProblem {
  int status = 500;
  std::string code;
  std::string message;
};

struct Slot {
  explicit Slot(PoolModel model_in) : model(std::move(model_in)) {}

  PoolModel model;
  std::shared_ptr<const LoadedModel> loaded;
  bool is_leaving = false;  // handed out no more: unloaded when the last user has given it back
  int users = 0;
  int owed = 0;     // who waited for it and has not come for it yet
  int waiting = 0;  // who wants it loaded and has seen no attempt end yet
  Clock::time_point wanted_since = {};
  Clock::time_point last_used = {};
  std::uint64_t attempts = 0;          // loads that have ended, one way or the other
  std::optional<LoadProblem> problem;  // of the newest attempt

  bool is_ready() const { return loaded && !is_leaving; }
  bool is_idle() const { return loaded && users == 0 && owed == 0; }
};

// Somebody who waits for a model, with the mutex held at both ends.
class Demand {
 public:
  Demand(Slot& slot, std::condition_variable& changed)
      : slot_(slot), changed_(changed), before_(slot.attempts) {
    if (slot_.waiting++ == 0) slot_.wanted_since = Clock::now();
    changed_.notify_all();
  }
  ~Demand() {
    int& count = is_answered() ? slot_.owed : slot_.waiting;
    if (count > 0) --count;
    changed_.notify_all();
  }
  // An attempt has ended since; one that was under way counts.
  bool is_answered() const { return slot_.attempts > before_; }
  Demand(const Demand&) = delete;
  Demand& operator=(const Demand&) = delete;

 private:
  Slot& slot_;
  std::condition_variable& changed_;
  const std::uint64_t before_;
};

class Unlocked {
 public:
  explicit Unlocked(std::unique_lock<std::mutex>& lock) : lock_(lock) { lock_.unlock(); }
  ~Unlocked() { lock_.lock(); }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  std::unique_lock<std::mutex>& lock_;
};

// By their last use, but idle ones before those in use.
bool leaves_before(const Slot& a, const Slot& b) {
  if (a.is_idle() != b.is_idle()) return a.is_idle();
  return a.last_used < b.last_used;
}

}  // namespace

struct ModelPool::Impl {
  PoolOptions options;
  Log log;
  std::list<Slot> slots;  // a list: leases point into it
  mutable std::mutex mutex;
  std::condition_variable changed;
  bool is_over = false;
  std::thread thread;

  Slot& find(std::string_view name);
  std::vector<ModelEntry> entries() const;
  std::shared_ptr<const LoadedModel> lease(Slot& slot);
  void give_back(Slot& slot);
  void run();
  Slot* next_wanted();
  bool make_room(const Slot& wanted, std::unique_lock<std::mutex>& lock);
  void let_go(Slot& slot, std::string_view why, std::unique_lock<std::mutex>& lock);
  bool sweep(std::unique_lock<std::mutex>& lock);
  void load(Slot& slot, std::unique_lock<std::mutex>& lock);
};

// With the mutex held.
std::vector<ModelEntry> ModelPool::Impl::entries() const {
  std::vector<ModelEntry> entries;
  for (const Slot& slot : slots) {
    ModelEntry entry = slot.loaded ? entry_of(*slot.loaded) : slot.model.known;
    entry.is_loaded = slot.is_ready();
    entry.quantization = slot.model.known.quantization;
    entry.parameters = slot.model.known.parameters;
    entry.size_bytes = slot.model.known.size_bytes;
    entries.push_back(std::move(entry));
  }
  return entries;
}

// With the mutex held.
Slot& ModelPool::Impl::find(std::string_view name) {
  if (is_any_model(name) && !slots.empty()) return slots.front();
  for (Slot& slot : slots)
    if (slot.model.known.is_named(name)) return slot;
  unknown_model(name, entries());
}

// With the mutex held.
std::shared_ptr<const LoadedModel> ModelPool::Impl::lease(Slot& slot) {
  ++slot.users;
  // The lease keeps the model by itself as well, and lets go of it first: a place that is given back is free.
  return {slot.loaded.get(), [this, &slot, model = slot.loaded](const LoadedModel*) mutable {
            model.reset();
            give_back(slot);
          }};
}

void ModelPool::Impl::give_back(Slot& slot) {
  const std::lock_guard lock(mutex);
  --slot.users;
  slot.last_used = Clock::now();
  changed.notify_all();
}

// With the mutex held: the one that was asked for first.
Slot* ModelPool::Impl::next_wanted() {
  Slot* first = nullptr;
  for (Slot& slot : slots)
    if (slot.waiting > 0 && !slot.loaded && (!first || slot.wanted_since < first->wanted_since))
      first = &slot;
  return first;
}

void ModelPool::Impl::let_go(Slot& slot, std::string_view why, std::unique_lock<std::mutex>& lock) {
  log.info("{} is unloaded: {}", slot.model.known.id, why);
  std::shared_ptr<const LoadedModel> model = std::move(slot.loaded);
  slot.loaded = nullptr;
  slot.is_leaving = false;
  lock.unlock();
  model.reset();  // joins the engine's thread
  lock.lock();
  changed.notify_all();
}

// Unloads what has to go. True: something was done, so look again.
bool ModelPool::Impl::sweep(std::unique_lock<std::mutex>& lock) {
  const auto now = Clock::now();
  for (Slot& slot : slots) {
    if (!slot.is_idle()) continue;
    const double idle = std::chrono::duration<double>(now - slot.last_used).count();
    const bool is_stale = options.idle_seconds > 0 && idle > options.idle_seconds && slot.waiting == 0;
    if (!slot.is_leaving && !is_stale) continue;
    let_go(slot, slot.is_leaving ? "its room is needed, or it was asked for" : "nobody used it", lock);
    return true;
  }
  return false;
}

// False: somebody has to leave first, and has been told.
bool ModelPool::Impl::make_room(const Slot& wanted, std::unique_lock<std::mutex>& lock) {
  for (;;) {
    std::uint64_t held = 0;
    Slot* leaver = nullptr;
    for (Slot& slot : slots) {
      if (!slot.loaded) continue;
      held += slot.model.bytes;
      if (!leaver || leaves_before(slot, *leaver)) leaver = &slot;
    }
    if (!options.memory_bytes || !leaver || held + wanted.model.bytes <= *options.memory_bytes) return true;
    if (!leaver->is_idle()) {
      // Not one that somebody waited for and has not got yet: two models would chase each other for ever.
      leaver->is_leaving = leaver->is_leaving || leaver->owed == 0;
      return false;
    }
    let_go(*leaver, "its room is needed", lock);
  }
}

void ModelPool::Impl::load(Slot& slot, std::unique_lock<std::mutex>& lock) {
  const std::string id = slot.model.known.id;
  lock.unlock();
  std::shared_ptr<const LoadedModel> loaded;
  std::optional<LoadProblem> problem;
  const auto began = Clock::now();
  if (options.memory_bytes && slot.model.bytes > *options.memory_bytes) {
    problem = LoadProblem{503, "model_does_not_fit",
                          fmt::format("the model '{}' needs {} bytes of memory, and --memory allows {}", id,
                                      slot.model.bytes, *options.memory_bytes)};
  } else {
    try {
      loaded = slot.model.load();
    } catch (const std::exception& error) {
      problem = LoadProblem{500, "model_load_failed",
                            fmt::format("the model '{}' cannot be loaded: {}", id, plain_message(error.what()))};
    }
  }
  if (problem)
    log.error("{}", problem->message);
  else
    log.info("{} is loaded, in {:.2f} s", id, std::chrono::duration<double>(Clock::now() - began).count());
  lock.lock();
  slot.loaded = std::move(loaded);
  slot.problem = std::move(problem);
  slot.last_used = Clock::now();
  slot.owed = slot.loaded ? slot.waiting : 0;
  slot.waiting = 0;
  ++slot.attempts;
  changed.notify_all();
}

void ModelPool::Impl::run() {
  std::unique_lock lock(mutex);
  while (!is_over) {
    if (sweep(lock)) continue;
    Slot* const wanted = next_wanted();
    if (wanted && make_room(*wanted, lock)) {
      load(*wanted, lock);
      continue;
    }
    if (options.idle_seconds > 0)
      changed.wait_for(lock, kSweep);
    else
      changed.wait(lock);
  }
}

ModelPool::ModelPool(std::vector<PoolModel> models, const PoolOptions& options, Log log)
    : impl_(std::make_unique<Impl>()) {
  std::set<std::string> names;
  const auto claim = [&](const std::string& name) {
    if (!names.insert(name).second)
      fail(ErrorCode::invalid_argument, "serve", "two models are called '{}'; give one of them another name",
           name);
  };
  for (PoolModel& model : models) {
    claim(model.known.id);
    for (const std::string& alias : model.known.aliases)
      if (alias != model.known.id) claim(alias);
    model.known.is_loaded = false;
    impl_->slots.emplace_back(std::move(model));
  }
  impl_->options = options;
  impl_->log = std::move(log);
  impl_->thread = std::thread([impl = impl_.get()] { impl->run(); });
}

ModelPool::~ModelPool() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->is_over = true;
    impl_->changed.notify_all();
  }
  impl_->thread.join();
}

std::shared_ptr<const LoadedModel> ModelPool::open(std::string_view name,
                                                   const std::function<void()>& waiting) {
  Impl& impl = *impl_;
  std::unique_lock lock(impl.mutex);
  Slot& slot = impl.find(name);
  while (!slot.is_ready()) {
    const Demand demand(slot, impl.changed);
    while (!slot.is_ready() && !demand.is_answered()) {
      impl.changed.wait_for(lock, kTick);
      const Unlocked unlocked(lock);
      waiting();
    }
    if (slot.is_ready())
      return impl.lease(slot);  // before the demand ends: nothing may take the model away in between
    if (slot.problem)
      throw RequestError(ErrorCode::internal, slot.problem->message,
                         {.param = "model", .code = slot.problem->code, .status = slot.problem->status});
  }
  return impl.lease(slot);
}

std::vector<ModelEntry> ModelPool::list() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->entries();
}

void ModelPool::preload(const std::function<void()>& waiting) {
  std::vector<std::string> names;
  for (const Slot& slot : impl_->slots)
    if (slot.model.preload) names.push_back(slot.model.known.id);
  for (const std::string& name : names) open(name, waiting);
}

bool ModelPool::unload(std::string_view name) {
  const std::lock_guard lock(impl_->mutex);
  Slot& slot = impl_->find(name);
  if (!slot.loaded) return false;
  slot.is_leaving = true;
  impl_->changed.notify_all();
  return true;
}

}  // namespace godwit::serve
