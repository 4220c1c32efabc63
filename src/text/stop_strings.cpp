#include "text/stop_strings.h"

#include <algorithm>
#include <utility>

namespace godwit::text {
namespace {

// The size of the longest end of `text` that is a proper start of `stop`.
std::size_t open_end(std::string_view text, std::string_view stop) {
  for (std::size_t size = std::min(text.size(), stop.size() - 1); size > 0; --size)
    if (text.ends_with(stop.substr(0, size))) return size;
  return 0;
}

}  // namespace

StopStrings::StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase_if(stops_, [](const std::string& stop) { return stop.empty(); });
}

// The stop that is complete first wins, and of several that end together the longest: that is what a
// byte-by-byte reader would see, so it cannot depend on how the text was split.
StopStrings::Piece StopStrings::add(std::string_view text, std::size_t barred) {
  const std::size_t known = held_.size() + barred;  // no match ends inside what was held
  held_.append(text);
  const std::string_view all = held_;
  for (std::size_t end = known + 1; end <= all.size(); ++end) {
    const std::string* best = nullptr;
    for (const std::string& stop : stops_)
      if (all.substr(0, end).ends_with(stop) && (best == nullptr || stop.size() > best->size())) best = &stop;
    if (best == nullptr) continue;
    Piece piece{std::string(all.substr(0, end - best->size())), *best};
    held_.clear();
    return piece;
  }
  std::size_t hold = 0;
  for (const std::string& stop : stops_) hold = std::max(hold, open_end(all, stop));
  Piece piece{std::string(all.substr(0, all.size() - hold)), std::nullopt};
  held_.erase(0, held_.size() - hold);
  return piece;
}

std::string StopStrings::finish() { return std::exchange(held_, {}); }

}  // namespace godwit::text
