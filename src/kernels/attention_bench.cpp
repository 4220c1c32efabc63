// Attention of one new token over a long context, in keys and values read per second, against a plain read of
// the same bytes in the same run; and of a prefill, in positions a second.
//   attend/FORM/LEVEL/threads    9 heads, 3 KV heads, head size 64, 16 layers of 8192 positions; blocks
//   shared prefill/FORM/LEVEL           512 queries over their own 512 positions, one thread
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
  Context(KvPlane key_plane, KvPlane value_plane, std::int64_t layers, std::int64_t positions)
      : keys(key_plane), values(value_plane), count(positions / kBlockPositions) {
    keys.heads = values.heads = kKvHeads;
    keys.dim = values.dim = kHeadDim;
    values.offset = plane_bytes(keys);
    const std::int64_t bytes = values.offset + plane_bytes(values);
    storage.resize(static_cast<std::size_t>(layers * count * bytes), std::byte{0x3c});
    for (std::int64_t i = 0; i < layers * count; i++) blocks.push_back(storage.data() + i * bytes);
  }
  KvPlane keys, values;
  std::int64_t count;
  std::vector<std::byte> storage;
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
          .heads = kHeads,
          .query_begin = 0,
          .query_end = static_cast<std::int64_t>(intervals.size()),
          .head_begin = 0,
          .head_end = kHeads,
          .q_stride = kHeads * kHeadDim,
          .out_stride = kHeads * kHeadDim,
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

void attend(benchmark::State& state, Form form, Level level, int threads) {
  constexpr std::int64_t kLayers = 16, kPositions = 8192;
  const Context context(form.keys, form.values, kLayers, kPositions);
  const std::vector<Interval> interval = {{0, kPositions}};
  const std::vector<float> q(kHeads * kHeadDim, 0.1f);
  std::vector<float> out(q.size()),
      parts(static_cast<std::size_t>(kHeads * context.count * part_elements(kHeadDim)));
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
      kernels.attention_merge({parts.data(), out.data(), interval.data(), 0, context.count, kHeads, kHeadDim,
                               0, 1, 0, kHeads, kHeads * kHeadDim});
    }
    times.push_back(bench_now() - start);
    state.SetIterationTime(times.back().wall);
  }
  report_bandwidth(state, context.storage.size(), times, reads);
}

void prefill(benchmark::State& state, Form form, Level level) {
  constexpr std::int64_t kQueries = 512;
  const Context context(form.keys, form.values, 1, kQueries);
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
    for (const Form& form : kForms) {
      for (const int threads : {1, 2})
        benchmark::RegisterBenchmark(
            ("attend/" + std::string(form.name) + suffix + "/" + std::to_string(threads)).c_str(), attend,
            form, level, threads)
            ->UseManualTime()
            ->Unit(benchmark::kMillisecond);
      benchmark::RegisterBenchmark(("prefill/" + std::string(form.name) + suffix).c_str(), prefill, form,
                                   level)
          ->Unit(benchmark::kMillisecond);
    }
  }
  return true;
}();

}  // namespace
}  // namespace godwit::kernels
