#include "ops/kv_visibility.h"

#include <algorithm>

namespace godwit::ops {

kernels::Interval seen_by(const KvLayer& layer, const KvRow& row, std::int64_t index) {
  const std::int64_t own = layer.reads_only ? row.position : row.position + index + 1;
  const std::int64_t lo = layer.window > 0 ? std::max<std::int64_t>(0, own - layer.window) : 0;
  if (row.ends.empty()) return {lo, own};
  const auto i = static_cast<std::size_t>(index);
  return {row.begins.empty() ? lo : std::min(lo, row.begins[i]), row.ends[i]};
}

kernels::Selection selection(NativeRuntime& runtime, const KvSpan& span, TokenRange queries,
                             std::int64_t origin, std::int64_t blocks) {
  if (span.selected == nullptr) return {};
  std::uint64_t* const words = runtime.scratch.take<std::uint64_t>(queries.count * blocks).data();
  runtime.share(queries.count, [&](std::int64_t from, std::int64_t to) {
    std::fill(words + from * blocks, words + to * blocks, std::uint64_t{0});
    for (std::int64_t query = from; query < to; ++query) {
      const std::int32_t* const named = span.selected + (queries.first + query) * span.selected_count;
      for (std::int64_t i = 0; i < span.selected_count; ++i) {
        const std::int64_t at = named[i] - origin;
        if (at < 0 || at >= blocks * kernels::kBlockPositions) continue;
        words[query * blocks + at / kernels::kBlockPositions] |= std::uint64_t{1}
                                                                 << at % kernels::kBlockPositions;
      }
    }
  });
  return {words, blocks};
}

}  // namespace godwit::ops
