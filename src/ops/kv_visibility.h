// Which positions the queries of a step see. Private to ops.
#pragma once

#include "kernels/attention.h"
#include "ops/kv_attention.h"

namespace godwit::ops {

inline std::int64_t block_count(std::int64_t positions) {
  return (positions + kernels::kBlockPositions - 1) / kernels::kBlockPositions;
}

// What query `index` of the row sees of the stored positions.
kernels::Interval seen_by(const KvLayer& layer, const KvRow& row, std::int64_t index);

// Tokens [first, first + count) of a span.
struct TokenRange {
  std::int64_t first, count;
};

// What those queries select of `blocks` blocks, of which position `origin` is the first; in runtime.scratch.
kernels::Selection selection(NativeRuntime& runtime, const KvSpan& span, TokenRange queries,
                             std::int64_t origin, std::int64_t blocks);

}  // namespace godwit::ops
