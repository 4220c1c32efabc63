// Delayed conversion of a row to the codecs of its policy (docs/kv.md). Private to cache.
#pragma once

#include "cache/row_impl.h"

namespace godwit::cache {

// Before a Step: a row that has reached its start turns to its codec, outside rounds. In `native` a row below the
// start has its full blocks encoded ahead, so that the turn itself costs no more than a block. Nothing that the
// row answers with changes before its start, and nothing at all if it throws.
void maintain(Row::Impl& row);

}  // namespace godwit::cache
