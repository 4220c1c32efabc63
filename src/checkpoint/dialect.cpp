#include "checkpoint/dialect.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/error.h"

namespace godwit::checkpoint {
namespace {

bool reads(const Dialect& dialect, std::string_view model_type) {
  return dialect.model_type == model_type || std::ranges::find(dialect.aliases, model_type) != dialect.aliases.end();
}

void check_unique(const std::vector<const Dialect*>& dialects) {
  std::set<std::string_view> types, architectures;
  const auto add = [](std::set<std::string_view>& seen, std::string_view name, std::string_view what) {
    GODWIT_CHECK(!name.empty(), "a dialect with a blank {}", what);
    GODWIT_CHECK(seen.insert(name).second, "two dialects read the {} {}", what, name);
  };
  for (const Dialect* dialect : dialects) {
    add(types, dialect->model_type, "model_type");
    for (const std::string_view alias : dialect->aliases) add(types, alias, "model_type");
    for (const GgufDialect& gguf : dialect->gguf) add(architectures, gguf.architecture, "architecture");
  }
}

}  // namespace

Dialects::Dialects(std::vector<const Dialect*> dialects) {
  for (const Dialect* dialect : dialects)
    if (std::ranges::find(dialects_, dialect) == dialects_.end()) dialects_.push_back(dialect);
  check_unique(dialects_);
}

const Dialect* Dialects::of_type(std::string_view model_type) const {
  for (const Dialect* dialect : dialects_)
    if (reads(*dialect, model_type)) return dialect;
  return nullptr;
}

Dialects::Gguf Dialects::of_architecture(std::string_view architecture, std::string_view origin) const {
  std::vector<std::string_view> known;
  for (const Dialect* dialect : dialects_)
    for (const GgufDialect& gguf : dialect->gguf) {
      if (gguf.architecture == architecture) return {dialect, &gguf};
      known.push_back(gguf.architecture);
    }
  std::ranges::sort(known);
  fail(ErrorCode::unsupported, "gguf", "{}: architecture {} cannot be read; readable are {}", origin, architecture,
       fmt::join(known, ", "));
}

}  // namespace godwit::checkpoint
