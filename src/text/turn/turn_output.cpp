#include "text/turn/turn_output.h"

#include <utility>

namespace godwit::text {
namespace {

// splitmix64 (Steele, Lea, Flood 2014): a good mix of a counter, the same on every machine.
std::uint64_t mixed(std::uint64_t& state) {
  std::uint64_t z = (state += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

}  // namespace

std::string TurnOutput::new_id() {
  static constexpr std::string_view kLetters =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  std::string id = ids_ == CallIds::mistral ? "" : "call_";
  for (int left = ids_ == CallIds::mistral ? 9 : 24; left > 0; --left)
    id += kLetters[mixed(seed_) % kLetters.size()];
  return id;
}

void TurnOutput::begin_call(std::string_view name, std::string_view id) {
  std::string own(id);
  while (own.empty() || used_ids_.contains(own)) own = new_id();
  used_ids_.insert(own);
  pieces_.push_back({.kind = TurnPiece::Kind::call, .call = calls_++, .id = std::move(own), .name = std::string(name)});
}

void TurnOutput::end_call() { is_over_ |= !parallel_; }

void TurnOutput::append(TurnPiece::Kind kind, int call, std::string_view text) {
  if (text.empty() || is_over_) return;
  if (pieces_.empty() || pieces_.back().kind != kind || pieces_.back().call != call)
    pieces_.push_back({.kind = kind, .call = call});
  pieces_.back().text += text;
}

std::vector<TurnPiece> TurnOutput::take() { return std::exchange(pieces_, {}); }

}  // namespace godwit::text
