// What endpoints work with. The server keeps one; each request gets a copy, with a directory of models that notes what
// the request does.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "base/log.h"
#include "serve/access.h"
#include "serve/model_directory.h"
#include "serve/request_record.h"
#include "serve/responses_store.h"
#include "serve/server_metrics.h"

namespace godwit::serve {

// One flag, however often it is copied.
class SharedFlag {
 public:
  SharedFlag(bool value = false) : value_(std::make_shared<std::atomic<bool>>(value)) {}
  SharedFlag(const SharedFlag&) = default;
  SharedFlag& operator=(const SharedFlag&) = default;
  SharedFlag& operator=(bool value) {
    *value_ = value;
    return *this;
  }
  operator bool() const { return *value_; }

 private:
  std::shared_ptr<std::atomic<bool>> value_;
};

// A directory by reference, as a value.
class Models {
 public:
  Models(ModelDirectory& directory) : directory_(&directory) {}
  std::shared_ptr<const LoadedModel> open(std::string_view name, const std::function<void()>& waiting) {
    return directory_->open(name, waiting);
  }
  std::vector<ModelEntry> list() const { return directory_->list(); }
  bool unload(std::string_view name) { return directory_->unload(name); }
  ModelDirectory& directory() const { return *directory_; }

 private:
  ModelDirectory* directory_;
};

// What the program around the server does for it.
struct Hooks {
  std::function<void(LogLevel, std::string_view id, std::string_view message)> request_line = {};
  std::function<void(const RequestRecord&)> access_line = {};                         // at the end of each request
  std::function<void(const RequestRecord&, std::string_view body)> prompt_line = {};  // set: prompts are to be kept
  std::function<void()> drain = {};                                                   // begins the end of the server
};

struct Context {
  Models models;
  AccessRules access;
  std::function<std::int64_t()> now_unix;
  Log log;
  SharedFlag draining = false;  // set once: no new generations
  SharedFlag loading = false;   // models that the server starts with are not there yet
  double request_seconds = 3600;  // a request that takes longer is given up
  std::shared_ptr<ServerMetrics> metrics = std::make_shared<ServerMetrics>();
  Hooks hooks = {};
  std::shared_ptr<ResponseStore> responses = std::make_shared<ResponseStore>();  // of /v1/responses
};

}  // namespace godwit::serve
