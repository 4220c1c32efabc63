// POST /v1/responses, the way in: body -> typed request.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "serve/chat_turn.h"
#include "serve/responses_store.h"

namespace godwit::serve {

struct ResponsesRequest {
  ChatTurn turn = {};
  Json echo = Json::object();                     // the fields of the response that repeat the request
  Json items = Json::array();                     // of `input`, each with its id
  std::vector<ResponseStore::Turn> earlier = {};  // what previous_response_id stands for
  bool stream = false;
  bool is_stored = true;
  bool may_cut = false;                    // truncation: auto
  std::vector<std::string> left_out = {};  // types of tools that are no functions
};

// Throws RequestError that names the field, 404 previous_response_not_found among them.
ResponsesRequest parse_responses_request(const Json& body, const ServedModel& model, ResponseStore& store,
                                         std::int64_t now);

// With truncation `auto`: drops messages from the front, system messages aside, until the prompt leaves room
// for an answer or the last message is all there is.
void cut_to_context(ChatTurn& turn, const ServedModel& model);

}  // namespace godwit::serve
