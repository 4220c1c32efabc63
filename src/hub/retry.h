// When to try a request again, and after how long.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "hub/http_client.h"

namespace godwit::hub {

struct RetryPolicy {
  int attempts = 5;  // tries without any new byte before giving up
  std::chrono::milliseconds first_delay{500};
  std::chrono::milliseconds longest_delay{30000};
  std::chrono::milliseconds longest_retry_after{600000};  // a server asking for more is an error
};

bool is_retriable_status(int status);  // 408, 429 and all of 5xx

// first * 2^(failures-1), capped; a Retry-After header (seconds or an HTTP date) wins. nullopt: the server
// asks for longer than anyone wants to wait. failures >= 1.
std::optional<std::chrono::milliseconds> retry_delay(const RetryPolicy& policy, int failures,
                                                     const std::optional<std::string>& retry_after);

// Sleeps in slices of 50 ms; throws Error{cancelled} as soon as `stop` says so.
void interruptible_sleep(std::chrono::milliseconds delay, const StopCheck& stop);

}  // namespace godwit::hub
