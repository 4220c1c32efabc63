// The code that opens models: an immutable list of families. Extending it makes a new one, and models opened
// through the old one keep their code.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/dialect.h"
#include "models/family.h"
#include "models/profile.h"

namespace godwit::models {

class Registry {
 public:
  // The families of models/families.inc.
  static Registry builtin();
  // Families are copied; their strings and dialects must outlive the registry. Error{internal} naming it: a
  // blank or duplicate id, a model_type that two dialects read, the graph of a family that is not there, or
  // one whose loop differs from its own.
  explicit Registry(std::vector<Family> families);
  // One family more; this registry stays as it is.
  Registry with(const Family& family) const;

  // Nobody reads the type (an alias counts): Error{unsupported} naming `origin`, the type and all that is
  // supported, and for a model that another command opens that command.
  void check_type(std::string_view model_type, std::string_view origin) const;
  // The code that a profile asks for: its implementation by id, else the one named like its graph
  // ("<graph>-generated" for a generated one). Never another: Error{unsupported} naming profile and id where
  // it is not there, or where its graph, loaders or loop are not the profile's.
  const Family& select(const Profile& profile) const;

  const std::vector<Family>& families() const { return families_; }
  std::vector<std::string> model_types() const;  // aliases included, sorted
  const checkpoint::Dialects& dialects() const { return dialects_; }

 private:
  std::vector<Family> families_;
  checkpoint::Dialects dialects_;
};

// What a family's files may be: safetensors, and GGUF where its dialect spells one.
std::vector<Loader> loaders_of(const Family& family);

}  // namespace godwit::models
