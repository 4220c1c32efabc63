// A chat's answer while it is made, taken apart into reasoning, content and calls: what the endpoints of
// every API write out in their own shapes.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "serve/chat_turn.h"
#include "serve/choice_stream.h"
#include "serve/content_logprobs.h"
#include "serve/model_directory.h"
#include "text/grammar.h"
#include "text/turn/turn_parser.h"

namespace godwit::serve {

enum class ChatFinish { stop, length, tool_calls };

struct ChatDelta {
  int choice = 0;
  bool is_first = false;      // of its choice
  std::vector<int> ids = {};  // the tokens made, whatever became of their text
  std::vector<text::TurnPiece> pieces = {};
  std::vector<LogprobEntry> logprobs = {};     // of the content in `pieces`
  std::optional<ChatFinish> finish = {};       // on the last delta of a choice
  std::optional<std::string> stop_match = {};  // the stop string that ended it
};

class ChatAnswer {
 public:
  // Renders, tokenizes and submits: whatever can be refused is thrown here, before anything was answered.
  // Throws RequestError context_length_exceeded and what render_turn and the engine throw.
  ChatAnswer(std::shared_ptr<const LoadedModel> loaded, const ChatTurn& turn);

  // The next delta; nullopt after the last choice. As ChoiceStream::next.
  std::optional<ChatDelta> next(const std::function<void()>& waiting);

  const ServedModel& model() const { return loaded_->model; }
  bool has_logprobs() const { return stream_->plan().common.logprobs; }
  // What the content is held to; null: anything.
  const std::shared_ptr<const text::CompiledGrammar>& grammar() const { return grammar_; }
  const std::vector<int>& prompt() const { return stream_->plan().prompts[0]; }
  Usage usage() const;
  std::optional<std::uint64_t> seed() const { return stream_->seed(); }
  const decode::Timings& timings() const { return stream_->timings(); }

 private:
  struct Choice {
    text::TurnParser parser;
    ContentLogprobs logprobs = {};
    int calls = 0;
    bool is_ended = false;  // nothing more is wanted of it
  };

  ChatDelta take(Delta delta);
  void read(Delta& delta, Choice& choice, ChatDelta& into);

  std::shared_ptr<const LoadedModel> loaded_;
  std::vector<text::ToolSpec> tools_;
  bool is_parallel_;
  std::shared_ptr<const text::CompiledGrammar> grammar_;
  std::optional<ChoiceStream> stream_;
  std::vector<Choice> choices_;
  int reasoning_tokens_ = 0;
};

}  // namespace godwit::serve
