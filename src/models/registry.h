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
  // A blank or duplicate model_type or alias is Error{internal} naming it.
  explicit Registry(std::vector<const Family*> families);
  Registry with(const Family& family) const;

  // By model_type or alias. Nobody serves it: Error{unsupported} naming `origin`, the type, and all that is
  // supported. GGUF files come here too: checkpoint reads their architecture as a model_type.
  const Family& find(std::string_view model_type, std::string_view origin) const;
  std::vector<std::string> model_types() const;  // aliases included, sorted

 private:
  std::vector<const Family*> families_;
};

}  // namespace godwit::models
