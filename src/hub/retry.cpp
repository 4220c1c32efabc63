#include "hub/retry.h"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <thread>

#include "base/error.h"

namespace godwit::hub {
using std::chrono::milliseconds;

bool is_retriable_status(int status) {
  return status == 408 || status == 429 || (status >= 500 && status < 600);
}

std::optional<milliseconds> retry_delay(const RetryPolicy& policy, int failures,
                                        const std::optional<std::string>& retry_after) {
  if (retry_after) {
    long long seconds = 0;
    const auto [end, error] =
        std::from_chars(retry_after->data(), retry_after->data() + retry_after->size(), seconds);
    if (error != std::errc() || end != retry_after->data() + retry_after->size()) {
      const auto date = parse_http_date(*retry_after);
      seconds = date ? std::max<long long>(0, *date - std::time(nullptr)) : -1;
    }
    if (seconds > policy.longest_retry_after.count() / 1000) return std::nullopt;
    if (seconds >= 0) return milliseconds(seconds * 1000);
  }
  auto delay = policy.first_delay;
  for (int i = 1; i < failures && delay < policy.longest_delay; ++i) delay *= 2;
  return std::min(delay, policy.longest_delay);
}

void interruptible_sleep(milliseconds delay, const StopCheck& stop) {
  const auto end = std::chrono::steady_clock::now() + delay;
  for (;;) {
    if (stop && stop()) fail(ErrorCode::cancelled, "hub", "stopped on request");
    const auto left = std::chrono::duration_cast<milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return;
    std::this_thread::sleep_for(std::min(left, milliseconds(50)));
  }
}

}  // namespace godwit::hub
