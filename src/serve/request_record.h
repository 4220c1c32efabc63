// What is known of one request when it has ended: the source of its access line and of most metrics. Written
// and read on the thread of its connection.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace godwit::serve {

struct RequestRecord {
  using Clock = std::chrono::steady_clock;

  std::string id = {};
  std::string method = {};
  std::string path = {};           // without query: that may hold secrets
  std::string_view route = {};     // as in the table of routes; "": none fits
  std::string client = {};         // address of the peer
  std::string model = {};          // its id; "": none was opened
  Clock::time_point arrived = {};  // whole, body included
  int status = 0;                  // sent; 499: the client left before the end
  std::string error = {};          // code of the failure, also of one in the middle of a stream
  bool is_stream = false;

  // Over all prompts of the request.
  int submitted = 0;  // prompts that the engine took
  int prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0;
  double queue_seconds = 0, prefill_seconds = 0, decode_seconds = 0;
  double first_token_seconds = -1;  // from arrival; negative: no token came
  std::string finish = {};          // of the newest choice that ended
  std::int64_t rows_at_start = -1;  // answers that were being made when it was submitted; negative: not known
  bool keeps_text = false;          // whether `answers` is wanted
  std::vector<std::string> answers = {};  // text of each choice

  double seconds() const { return std::chrono::duration<double>(Clock::now() - arrived).count(); }
};

}  // namespace godwit::serve
