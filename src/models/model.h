// A decoder graph. One implementation per family file; written once for both numeric modes (nn picks the
// ops).
#pragma once

#include <string>
#include <vector>

#include "base/mx.h"
#include "cache/state.h"

namespace godwit::models {

class Model {
 public:
  virtual ~Model() = default;
  virtual cache::StateNeeds state_needs() const = 0;
  // tokens i32 [step.token_count()] -> [tokens, hidden] after the final norm.
  virtual mx::array hidden(const mx::array& tokens, cache::Step& step) const = 0;
  // [n, hidden] -> [n, vocab] in the model's dtype (not softmaxed).
  virtual mx::array logits(const mx::array& hidden) const = 0;
  // What the opener should say about this checkpoint: weights that look wrong, settings that the graph ignores.
  virtual std::vector<std::string> warnings() const { return {}; }
};

}  // namespace godwit::models
