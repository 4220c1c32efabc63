// Attention of one new token over a long context, in keys and values read per second, against a plain read of
// the same bytes in the same run; and of a prefill, in positions a second.
//   attend/TYPE/LEVEL/threads    9 heads, 3 KV heads, head size 64, 16 layers of 8192 positions; blocks
//   shared out prefill/LEVEL                512 queries over their own 512 positions, one thread
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/bench_support.h"
#include "kernels/select.h"

namespace godwit::kernels {
namespace {

constexpr std::int64_t kHeads = 9, kKvHeads = 3, kHeadDim = 64;

// Blocks of several layers in one allocation: per layer and block, keys then values.
struct Context {
  Context(KvType kv_type, std::int64_t layers, std::int64_t positions)
      : type(kv_type), blocks(positions / kBlockPositions) {
    const std::int64_t bytes = kKvHeads * kHeadDim * kBlockPositions * kv_element_bytes(type);
    storage.resize(static_cast<std::size_t>(layers * blocks * 2 * bytes), std::byte{0x3c});
    for (std::int64_t i = 0; i < layers * blocks; i++) {
      keys.push_back(storage.data() + 2 * i * bytes);
      values.push_back(storage.data() + (2 * i + 1) * bytes);
    }
  }
  KvType type;
  std::int64_t blocks;
  std::vector<std::byte> storage;
  std::vector<void*> keys, values;
};

AttentionArgs arguments(const Context& context, std::int64_t layer, const std::vector<float>& q, float* out,
                        const std::vector<Interval>& intervals) {
  return {q.data(),
          out,
          intervals.data(),
          context.keys.data() + layer * context.blocks,
          context.values.data() + layer * context.blocks,
          context.type,
          kHeads,
          kKvHeads,
          kHeadDim,
          0,
          static_cast<std::int64_t>(intervals.size()),
          0,
          kHeads,
          kHeads * kHeadDim,
          kHeads * kHeadDim,
          0.125f};
}

void attend(benchmark::State& state, KvType type, Level level, int threads) {
  constexpr std::int64_t kLayers = 16, kPositions = 8192;
  const Context context(type, kLayers, kPositions);
  const std::vector<Interval> interval = {{0, kPositions}};
  const std::vector<float> q(kHeads * kHeadDim, 0.1f);
  std::vector<float> out(q.size()),
      parts(static_cast<std::size_t>(kHeads * context.blocks * part_elements(kHeadDim)));
  ThreadPool pool(threads);
  const KernelTable& kernels = kernels_for(level);
  std::vector<Seconds> times, reads;
  for (auto _ : state) {
    reads.push_back(time_of_read(pool, context.storage.data(), context.storage.size()));
    const Seconds start = bench_now();
    for (std::int64_t layer = 0; layer < kLayers; layer++) {
      AttentionArgs args = arguments(context, layer, q, out.data(), interval);
      pool.run(threads, [&](int part) {
        AttentionArgs share = args;
        share.parts = parts.data();
        share.parts_blocks = context.blocks;
        share.block_begin = context.blocks * part / threads;
        share.block_end = context.blocks * (part + 1) / threads;
        kernels.attention(share);
      });
      kernels.attention_merge({parts.data(), out.data(), interval.data(), 0, context.blocks, kHeads, kHeadDim,
                               0, 1, 0, kHeads, kHeads * kHeadDim});
    }
    times.push_back(bench_now() - start);
    state.SetIterationTime(times.back().wall);
  }
  report_bandwidth(state, context.storage.size(), times, reads);
}

void prefill(benchmark::State& state, Level level) {
  constexpr std::int64_t kQueries = 512;
  const Context context(KvType::f32, 1, kQueries);
  std::vector<Interval> intervals;
  for (std::int64_t i = 0; i < kQueries; i++) intervals.push_back({0, i + 1});
  const std::vector<float> q(kQueries * kHeads * kHeadDim, 0.1f);
  std::vector<float> out(q.size());
  const KernelTable& kernels = kernels_for(level);
  for (auto _ : state) kernels.attention(arguments(context, 0, q, out.data(), intervals));
  const double multiply_adds = kQueries * (kQueries + 1) / 2.0 * kHeads * kHeadDim * 2;
  state.counters["GFLOPS"] = benchmark::Counter(
      2e-9 * multiply_adds, benchmark::Counter::kIsIterationInvariantRate);  // by processor time
}

const bool kRegistered = [] {
  for (const Level level : runnable_levels()) {
    if (level == Level::scalar) continue;
    const std::string suffix = std::string("/") + level_name(level);
    for (const int threads : {1, 2})
      for (const KvType type : {KvType::f32, KvType::f16, KvType::bf16}) {
        const char* name = type == KvType::f32 ? "f32" : type == KvType::f16 ? "f16" : "bf16";
        benchmark::RegisterBenchmark(
            ("attend/" + std::string(name) + suffix + "/" + std::to_string(threads)).c_str(), attend, type,
            level, threads)
            ->UseManualTime()
            ->Unit(benchmark::kMillisecond);
      }
    benchmark::RegisterBenchmark(("prefill" + suffix).c_str(), prefill, level)->Unit(benchmark::kMillisecond);
  }
  return true;
}();

}  // namespace
}  // namespace godwit::kernels
