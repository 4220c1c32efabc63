// What endpoints work with. One per server; shared by all connection threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "base/log.h"
#include "serve/access.h"
#include "serve/model_directory.h"

namespace godwit::serve {

struct Context {
  ModelDirectory& models;
  AccessRules access;
  std::function<std::int64_t()> now_unix;
  Log log;
  std::atomic<bool> draining{false};  // set once: no new generations
};

}  // namespace godwit::serve
