// What a turn is made of, in the order in which a client gets it.
#pragma once

#include <string>

namespace godwit::text {

struct TurnPiece {
  enum class Kind {
    reasoning,
    content,
    call,       // a new call: `call`, `id` and the whole `name`
    arguments,  // more of the arguments of `call`, JSON text
  };
  Kind kind = Kind::content;
  int call = 0;  // index among the calls of the turn, from 0
  std::string text = {};
  std::string id = {};
  std::string name = {};
};

}  // namespace godwit::text
