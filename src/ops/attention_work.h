// The attention of all rows of a layer as pieces of about equal work, shared out to the threads at once: a step of many
// short rows forks once, and a long row beside them does not keep one thread busy while the others wait. How it is cut
// changes no bit (kernels/attention.h). Private to ops.
#pragma once

#include <span>

#include "kernels/attention.h"
#include "ops/native_runtime.h"

namespace godwit::ops {

// One row: queries [0, query_end) and all heads of `args`, whose blocks are [begin, end).
struct RowAttention {
  kernels::AttentionArgs args;
  std::int64_t begin, end;
  bool is_decoded;             // a piece decodes the blocks that it reads for itself
  bool may_keep_parts = true;  // not where the walk is taken up again

  // How it is cut: `queries` and a part of a KV head's query heads a piece, or `blocks` a piece where they are not 0.
  std::int64_t queries = 0, splits = 1, blocks = 0;
  std::int64_t pieces = 0;
};

// Plans how `rows` are cut and attends to them; memory comes from runtime.scratch.
void attend_rows(NativeRuntime& runtime, std::span<RowAttention> rows);

}  // namespace godwit::ops
