// Finds the earliest of several stop strings in text that arrives in pieces, holding back only what could
// still become the start of one. Streamed text equals the text of one whole call, for every split.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace godwit::text {

class StopStrings {
 public:
  // Empty strings are ignored.
  explicit StopStrings(std::vector<std::string> stops);

  struct Piece {
    std::string text;                    // safe to show
    std::optional<std::string> matched;  // the stop string that ended the text; nothing follows it
  };
  // The first `barred` bytes of it complete no match; one that is completed behind them may begin in them.
  Piece add(std::string_view text, std::size_t barred = 0);
  // The held-back tail, when the answer ends without a match.
  std::string finish();

 private:
  std::vector<std::string> stops_;
  std::string held_;
};

}  // namespace godwit::text
