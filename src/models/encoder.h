// A text encoder: hidden states of a whole text at once, nothing generated and nothing remembered.
#pragma once

#include "base/mx.h"

namespace godwit::models {

class Encoder {
 public:
  virtual ~Encoder() = default;
  // tokens i32 [n], one text with its special tokens, n at most max_tokens() -> [n, hidden] of the last layer.
  virtual mx::array hidden(const mx::array& tokens) const = 0;
  virtual int max_tokens() const = 0;
};

}  // namespace godwit::models
