// What serve needs of a model that turns texts into vectors: the seam beside Generator.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

namespace godwit::serve {

class Embedder {
 public:
  virtual ~Embedder() = default;

  virtual int dimensions() const = 0;
  virtual int max_tokens() const = 0;  // of one text, special ones included
  // Whether the model was made to be cut to fewer dimensions.
  virtual bool allows_dimensions(int count) const { return count == dimensions(); }
  virtual bool is_normalized() const = 0;  // vectors have length 1
  // Whether requests may hold tokens in place of text: those of another vocabulary would mean nothing here.
  virtual bool takes_token_ids() const { return false; }

  // The tokens of a whole text, special ones included. Any thread.
  virtual std::vector<int> encode(std::string_view text) const = 0;
  // One vector of dimensions() for each text of 1 to max_tokens() tokens, each by itself: it does not depend on what
  // else is asked. Any thread; blocks. `waiting` runs between texts and may throw.
  virtual std::vector<std::vector<float>> embed(const std::vector<std::vector<int>>& texts,
                                                const std::function<void()>& waiting) = 0;
};

}  // namespace godwit::serve
