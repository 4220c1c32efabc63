// Whether an engine still moves.
#pragma once

#include "decode/engine_stats.h"

namespace godwit::serve {

// Far above what the longest chunk of a prompt takes: an engine that has work and has not looked for more in
// that time hangs.
inline constexpr double kStuckSeconds = 300;

// An idle engine has no pulse, and needs none.
inline bool is_stuck(const decode::EngineStats& stats) {
  return stats.rows_running + stats.rows_waiting > 0 && stats.heartbeat_age > kStuckSeconds;
}

}  // namespace godwit::serve
