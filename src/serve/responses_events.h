// An answer of POST /v1/responses while it is made: its items, and the events that tell of them in order.
// Whole answers are the last event's response.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "serve/chat_answer.h"
#include "serve/dialect.h"

namespace godwit::serve {

class ResponseWriter {
 public:
  using Send = std::function<void(std::string_view type, const Json& event)>;

  // `frame`: id, created_at and model, and what repeats the request. A null `send` tells nobody.
  ResponseWriter(Json frame, const ChatAnswer& answer, Send send);

  void begin();  // response.created, response.in_progress
  void add(const ChatDelta& delta);
  // response.completed, or response.incomplete when the limit of tokens ended it. Returns the response.
  Json finish(std::int64_t now);
  // error and response.failed.
  Json fail(const Failure& failure);

  const Json& output() const { return output_; }

 private:
  enum class Open { none, reasoning, message, call };

  void send(std::string_view type, Json event);
  void send_of_item(std::string_view type, Json event);
  Json response(std::string_view status) const;
  Json& item() { return output_.back(); }
  std::string& text() { return item()["content"][0]["text"].get_ref<std::string&>(); }

  void read(const text::TurnPiece& piece, Json& logprobs);
  void open(Open what, Json item);
  void open_part(Json part);
  void close(std::string_view status);
  void close_text();
  void add_text(const std::string& more, Json logprobs);
  Json logprobs_json(const std::vector<LogprobEntry>& entries) const;

  Json frame_;
  const ChatAnswer& answer_;
  Send send_;
  std::int64_t sequence_ = 0;
  Json output_ = Json::array();
  Open open_ = Open::none;
  std::optional<ChatFinish> finish_;
};

}  // namespace godwit::serve
