#include "serve/chat_message.h"

#include <algorithm>
#include <iterator>

namespace godwit::serve {

void ChatMessage::add(ChatDelta delta) {
  using Kind = text::TurnPiece::Kind;
  for (text::TurnPiece& piece : delta.pieces) {
    if (piece.kind == Kind::reasoning)
      reasoning += piece.text;
    else if (piece.kind == Kind::content)
      content += piece.text;
    else if (piece.kind == Kind::call)
      calls.push_back({std::move(piece.id), std::move(piece.name)});
    else
      calls.at(static_cast<std::size_t>(piece.call)).arguments += piece.text;
  }
  std::ranges::move(delta.logprobs, std::back_inserter(logprobs));
  std::ranges::move(delta.ids, std::back_inserter(ids));
  if (delta.finish) finish = delta.finish;
}

}  // namespace godwit::serve
