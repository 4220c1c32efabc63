// What a policy and a mode can serve. Private to cache.
#pragma once

#include "base/numeric_mode.h"
#include "cache/kv_policy.h"
#include "cache/layer_need.h"

namespace godwit::cache {

// Error{invalid_argument} for needs that make no sense, Error{unsupported} naming the first layer that the codec
// or the mode cannot serve, and why. Nothing has been allocated yet.
void check_serveable(const StateNeeds& needs, const KvPolicy& policy, NumericMode mode);

}  // namespace godwit::cache
