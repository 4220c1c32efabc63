// Several models behind one server: loaded when they are asked for, unloaded when they have been idle or when
// another needs their room. One thread loads and unloads; whoever waits for a model waits for that one only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "serve/model_directory.h"

namespace godwit::serve {

struct PoolModel {
  ModelEntry known;         // what is said of it while it is not loaded
  std::uint64_t bytes = 0;  // of memory that it takes when it is loaded, as far as is known
  bool preload = false;
  // Makes it ready, with everything it needs; destroying the result unloads it. Called on the pool's thread.
  std::function<std::shared_ptr<const LoadedModel>()> load;
};

struct PoolOptions {
  std::optional<std::uint64_t> memory_bytes;  // for all that is loaded; absent: no limit
  double idle_seconds = 0;                    // a model that nobody used for so long is unloaded; 0: never
};

class ModelPool final : public ModelDirectory {
 public:
  // The first one is that of requests which name none. Throws Error{invalid_argument} for a name that two of
  // them have.
  ModelPool(std::vector<PoolModel> models, const PoolOptions& options, Log log);
  // Every model must have been given back.
  ~ModelPool() override;

  // As ModelDirectory. A model that cannot be loaded is RequestError 500 model_load_failed with the reason,
  // and is tried again the next time; one that is too large for the memory is 503 model_does_not_fit.
  std::shared_ptr<const LoadedModel> open(std::string_view name,
                                          const std::function<void()>& waiting) override;
  std::vector<ModelEntry> list() const override;

  // Loads what is to be there from the start; `waiting` as in open(). Throws what went wrong first.
  void preload(const std::function<void()>& waiting);
  // Once nobody uses it. False: it was not loaded. Throws RequestError 404.
  bool unload(std::string_view name) override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace godwit::serve
