// Takes a model's turn apart while it is written: reasoning, content and calls of tools. A push machine fed
// one token at a time; pieces are final, and their texts join to what a parse of the whole turn gives, however it was
// cut. The fragments of a call's arguments join to valid JSON, whatever the model wrote.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/turn/turn_format.h"
#include "text/turn/turn_piece.h"

namespace godwit::text {

struct TurnStart {
  bool is_in_reasoning = false;  // the prompt itself opened the reasoning
  std::uint64_t seed = 0;        // ids of calls follow from it
  bool is_parallel = true;       // false: the turn is over with its first whole call
};

class TurnParser {
 public:
  // The tools are those of the request: formats without types in the text take them from the schemas. Without tools
  // nothing is a call, and text that looks like one is content.
  TurnParser(const TurnFormat& format, std::span<const ToolSpec> tools, const TurnStart& start);
  TurnParser(TurnParser&&) noexcept;
  TurnParser& operator=(TurnParser&&) noexcept;
  ~TurnParser();

  // One token and the text that became certain with it, in whole characters; id -1: text alone.
  std::vector<TurnPiece> add(int id, std::string_view text);
  // What was held back, at the end of the turn.
  std::vector<TurnPiece> finish();
  // Whether the newest token belonged to the reasoning.
  bool is_in_reasoning() const;
  // Whether nothing more is wanted of the turn.
  bool is_over() const;
  // Whether the turn ended inside the arguments of its last call: they were closed, but are not all that was meant.
  bool is_cut() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace godwit::text
