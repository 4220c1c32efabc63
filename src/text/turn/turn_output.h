// Collects the pieces of an answer: joins neighbours, numbers calls and makes their ids.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "text/turn/turn_piece.h"

namespace godwit::text {

enum class CallIds {
  openai,   // "call_" and 24 letters and digits
  mistral,  // 9 letters and digits: templates refuse others
};

class TurnOutput {
 public:
  // Ids follow from `seed` alone. Without `parallel` the answer is over with its first complete call.
  TurnOutput(CallIds ids, std::uint64_t seed, bool parallel) : ids_(ids), seed_(seed), parallel_(parallel) {}

  void reasoning(std::string_view text) { append(TurnPiece::Kind::reasoning, 0, text); }
  void content(std::string_view text) { append(TurnPiece::Kind::content, 0, text); }
  // `id` as the model wrote it; empty, or used before: one of ours.
  void begin_call(std::string_view name, std::string_view id = {});
  void arguments(std::string_view json) { append(TurnPiece::Kind::arguments, calls_ - 1, json); }
  void end_call();
  // The answer ended inside the arguments of the last call.
  void cut_call() { is_cut_ = true; }

  int calls() const { return calls_; }
  bool is_over() const { return is_over_; }
  bool is_cut() const { return is_cut_; }
  std::vector<TurnPiece> take();

 private:
  void append(TurnPiece::Kind kind, int call, std::string_view text);
  std::string new_id();

  CallIds ids_;
  std::uint64_t seed_;
  bool parallel_, is_over_ = false, is_cut_ = false;
  int calls_ = 0;
  std::set<std::string, std::less<>> used_ids_;
  std::vector<TurnPiece> pieces_;
};

}  // namespace godwit::text
