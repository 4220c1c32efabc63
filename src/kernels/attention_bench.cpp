// Attention of one new token over a long context, in keys and values read per second, against a plain read of
// the same bytes in the same run; and of a prefill, in positions a second.
//   attend/FORM/LEVEL/threads    9 heads, 3 KV heads, head size 64, 16 layers of 8192 positions; blocks shared
//   attend_14_2/LEVEL/threads    14 heads, 2 KV heads, f32
//   near/ROWS/LEVEL              1 KV head of that many heads over 64 positions, in the first-level cache, one thread
//   prefill/FORM/LEVEL           512 queries over their own 512 positions, one thread
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/thread_pool.h"
#include "kernels/bench_support.h"
#include "kernels/select.h"

namespace godwit::kernels {
namespace {

constexpr std::int64_t kHeadDim = 64;

struct Heads {
  std::int64_t queries, keys;
};
constexpr Heads kSmolLm = {9, 3}, kQwen = {14, 2};

// Blocks of several layers in one allocation: per layer and block, keys then values.
struct Context {
  Context(Heads heads_in, KvPlane key_plane, KvPlane value_plane, std::int64_t layers, std::int64_t positions)
      : heads(heads_in), keys(key_plane), values(value_plane), count(positions / kBlockPositions) {
    keys.heads = values.heads = heads.keys;
    keys.dim = values.dim = kHeadDim;
    values.offset = plane_bytes(keys);
    const std::int64_t bytes = values.offset + plane_bytes(values);
    const auto size = static_cast<std::size_t>(layers * count * bytes);
    storage = AlignedBuffer(size);
    std::memset(storage.data(), 0x3c, size);
    for (std::int64_t i = 0; i < layers * count; i++)
      blocks.push_back(static_cast<std::byte*>(storage.data()) + i * bytes);
  }
  Heads heads;
  KvPlane keys, values;
  std::int64_t count;
  AlignedBuffer storage;
  std::vector<void*> blocks;
};

AttentionArgs arguments(const Context& context, std::int64_t layer, const std::vector<float>& q, float* out,
                        const std::vector<Interval>& intervals) {
  return {.q = q.data(),
          .out = out,
          .intervals = intervals.data(),
          .blocks = context.blocks.data() + layer * context.count,
          .keys = context.keys,
          .values = context.values,
          .heads = context.heads.queries,
          .query_begin = 0,
          .query_end = static_cast<std::int64_t>(intervals.size()),
          .head_begin = 0,
          .head_end = context.heads.queries,
          .q_stride = context.heads.queries * kHeadDim,
          .out_stride = context.heads.queries * kHeadDim,
          .scale = 0.125f};
}

struct Form {
  const char* name;
  KvPlane keys, values;
};
constexpr Form kForms[] = {
    {"f32", {.form = KvForm::f32}, {.form = KvForm::f32}},
    {"f16", {.form = KvForm::f16}, {.form = KvForm::f16}},
    {"bf16", {.form = KvForm::bf16}, {.form = KvForm::bf16}},
    {"affine8", {KvForm::affine, 8, 64}, {KvForm::affine, 8, 64}},
    {"affine4", {KvForm::affine, 4, 64}, {KvForm::affine, 4, 64}},
    {"turbo8:3", {KvForm::turbo_keys, 8, 32}, {KvForm::turbo_values, 3, 32}},
};

void attend(benchmark::State& state, Heads heads, Form form, Level level, int threads) {
  constexpr std::int64_t kLayers = 16, kPositions = 8192;
  const Context context(heads, form.keys, form.values, kLayers, kPositions);
  const std::vector<Interval> interval = {{0, kPositions}};
  const std::vector<float> q(static_cast<std::size_t>(heads.queries * kHeadDim), 0.1f);
  std::vector<float> out(q.size()),
      parts(static_cast<std::size_t>(heads.queries * context.count * part_elements(kHeadDim)));
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
        share.parts_blocks = context.count;
        share.block_begin = context.count * part / threads;
        share.block_end = context.count * (part + 1) / threads;
        kernels.attention(share);
      });
      kernels.attention_merge({parts.data(), out.data(), interval.data(), 0, context.count, heads.queries, kHeadDim,
                               0, 1, 0, heads.queries, heads.queries * kHeadDim});
    }
    times.push_back(bench_now() - start);
    state.SetIterationTime(times.back().wall);
  }
  report_bandwidth(state, context.storage.size(), times, reads);
}

void prefill(benchmark::State& state, Form form, Level level) {
  constexpr std::int64_t kQueries = 512;
  const Context context(kSmolLm, form.keys, form.values, 1, kQueries);
  std::vector<Interval> intervals;
  for (std::int64_t i = 0; i < kQueries; i++) intervals.push_back({0, i + 1});
  const std::vector<float> q(static_cast<std::size_t>(kQueries * kSmolLm.queries * kHeadDim), 0.1f);
  std::vector<float> out(q.size());
  const KernelTable& kernels = kernels_for(level);
  for (auto _ : state) kernels.attention(arguments(context, 0, q, out.data(), intervals));
  const double multiply_adds = kQueries * (kQueries + 1) / 2.0 * kSmolLm.queries * kHeadDim * 2;
  state.counters["GFLOPS"] = benchmark::Counter(
      2e-9 * multiply_adds, benchmark::Counter::kIsIterationInvariantRate);  // by processor time
}

void near_rows(benchmark::State& state, std::int64_t rows, Level level) {
  const Context context({rows, 1}, {.form = KvForm::f32}, {.form = KvForm::f32}, 1, kBlockPositions);
  const std::vector<Interval> interval = {{0, kBlockPositions}};
  const std::vector<float> q(static_cast<std::size_t>(rows * kHeadDim), 0.1f);
  std::vector<float> out(q.size());
  const KernelTable& kernels = kernels_for(level);
  for (auto _ : state) kernels.attention(arguments(context, 0, q, out.data(), interval));
  state.counters["GFLOPS"] = benchmark::Counter(4e-9 * static_cast<double>(rows * kHeadDim * kBlockPositions),
                                                benchmark::Counter::kIsIterationInvariantRate);
}

const bool kRegistered = [] {
  for (const Level level : runnable_levels()) {
    if (level == Level::scalar) continue;
    const std::string suffix = std::string("/") + level_name(level);
    for (const Form& form : kForms) {
      for (const int threads : {1, 2})
        benchmark::RegisterBenchmark(
            ("attend/" + std::string(form.name) + suffix + "/" + std::to_string(threads)).c_str(), attend,
            kSmolLm, form, level, threads)
            ->UseManualTime()
            ->Unit(benchmark::kMillisecond);
      benchmark::RegisterBenchmark(("prefill/" + std::string(form.name) + suffix).c_str(), prefill, form,
                                   level)
          ->Unit(benchmark::kMillisecond);
    }
    for (const int threads : {1, 2})
      benchmark::RegisterBenchmark(("attend_14_2" + suffix + "/" + std::to_string(threads)).c_str(), attend, kQwen,
                                   kForms[0], level, threads)
          ->UseManualTime()
          ->Unit(benchmark::kMillisecond);
    for (const int rows : {1, 2, 3, 4, 7, 8, 16})
      benchmark::RegisterBenchmark(("near/" + std::to_string(rows) + suffix).c_str(), near_rows, rows, level);
  }
  return true;
}();

}  // namespace
}  // namespace godwit::kernels
