// The models that requests may name, and how one is held while it answers.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "serve/embedder.h"
#include "serve/generator.h"
#include "serve/served_model.h"

namespace godwit::serve {

// A model that is ready to answer, for as long as the pointer to it lives.
struct LoadedModel {
  const ServedModel& model;
  Generator& generator;
  Embedder* embedder = nullptr;  // of models that turn texts into vectors
};

// What can be said of a model whether it is loaded or not.
struct ModelEntry {
  std::string id = {};
  std::vector<std::string> aliases = {};
  std::int64_t created = 0;  // unix seconds
  bool is_loaded = true;
  int context_length = 0;  // 0: not known before it is loaded
  int vocabulary = 0;
  std::string architecture = {};      // "llama", as its files name it; "": not known
  std::string quantization = {};      // of its weights, as its files name it; "": not known
  std::int64_t parameters = 0;        // numbers in its weights; 0: not known
  std::int64_t size_bytes = 0;        // of its weight files; 0: not known
  std::string settings = {};          // how it was opened, for people: "math native, kv dense"; "": not loaded
  std::vector<std::string> capabilities = {};  // "completion", "chat", "tools", "reasoning", "embedding"
  std::optional<decode::EngineStats> engine = {};  // what it does just now, where it is loaded

  bool is_named(std::string_view name) const;  // id or alias
};

class ModelDirectory {
 public:
  virtual ~ModelDirectory() = default;

  // The model of an id or alias; of "", "default", gpt-* and claude-*: the one that stands for whatever there is. May
  // load it, and runs `waiting` meanwhile, which may throw. Throws RequestError 404 model_not_found, which lists what
  // there is, and Error{overloaded} when it cannot be loaded now.
  virtual std::shared_ptr<const LoadedModel> open(std::string_view name, const std::function<void()>& waiting) = 0;

  // Never waits for an engine.
  virtual std::vector<ModelEntry> list() const = 0;

  // Lets go of a model as soon as nobody uses it. False: it was not loaded, or is kept for good. Throws RequestError 404.
  virtual bool unload(std::string_view name);
};

// One model, loaded for good. All must outlive the directory.
class SingleModel final : public ModelDirectory {
 public:
  SingleModel(const ServedModel& model, Generator& generator, Embedder* embedder = nullptr)
      : loaded_{model, generator, embedder} {}
  std::shared_ptr<const LoadedModel> open(std::string_view name, const std::function<void()>& waiting) override;
  std::vector<ModelEntry> list() const override;

 private:
  LoadedModel loaded_;
};

// All that a loaded model says of itself; not the size of its files.
ModelEntry entry_of(const LoadedModel& loaded);

// Whether the name asks for no model in particular.
bool is_any_model(std::string_view name);
// Throws RequestError 404 model_not_found.
[[noreturn]] void unknown_model(std::string_view name, const std::vector<ModelEntry>& known);

// The name in a request's body, "" where it has none. Throws RequestError for one that is no string.
std::string model_name(const Json& body);

}  // namespace godwit::serve
