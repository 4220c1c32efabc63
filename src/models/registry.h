// Which graph serves which model. Immutable: extending makes a new registry, models opened through the old
// one keep their code.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/family.h"

namespace godwit::models {

class Registry {
 public:
  // The families of models/families.inc.
  static Registry builtin();
  // A blank or duplicate model_type, alias or architecture is Error{internal} naming it.
  explicit Registry(std::vector<const Family*> families);
  Registry with(const Family& family) const;

  // By model_type or alias; by architecture for GGUF files. Nobody serves it: Error{unsupported} naming
  // `origin`, the type, and all that is supported.
  const Family& by_model_type(std::string_view model_type, std::string_view origin) const;
  const Family& by_architecture(std::string_view architecture, std::string_view origin) const;
  const Family& select(const checkpoint::Config& config) const;

  std::vector<std::string> model_types() const;  // aliases included, sorted
  std::vector<std::string> architectures() const;

 private:
  std::vector<const Family*> families_;
};

}  // namespace godwit::models
