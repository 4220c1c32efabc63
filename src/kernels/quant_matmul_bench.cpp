// The quantized matmul against the read bandwidth measured in the same run, and its arithmetic rate.
//   decode/FORMAT/LEVEL/threads   one activation row through all weights of a model, pass by pass alternating
//   with a
//                                 plain read of the same bytes by the same threads; medians
//   batch/FORMAT/LEVEL/rows       activation rows through a 4096 x 4096 matrix on two threads
#include <benchmark/benchmark.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/bench_support.h"
#include "kernels/select.h"

namespace godwit::kernels {
namespace {

// The matrices that one token reads.
struct Matrices {
  const char* name;
  std::vector<std::pair<std::int64_t, std::int64_t>> shapes;  // N, K
};

Matrices smol_layers() {
  Matrices m{"smollm2-135m", {}};
  for (int layer = 0; layer < 30; layer++)
    for (const auto& shape : {std::pair{960, 576}, {576, 576}, {3072, 576}, {576, 1536}})
      m.shapes.push_back(shape);
  m.shapes.push_back({49152, 576});
  return m;
}
Matrices large() {
  return {"16x4096x4096", std::vector<std::pair<std::int64_t, std::int64_t>>(16, {4096, 4096})};
}

class Weights {
 public:
  Weights(PackedFormat format, const Matrices& matrices) {
    for (const auto& [rows, columns] : matrices.shapes) {
      shapes_.push_back({format, rows, columns});
      offsets_.push_back(bytes_.size());
      bytes_.resize(bytes_.size() + static_cast<std::size_t>(packed_bytes(shapes_.back())));
    }
    // Bit 4 is set: no scale of any type is subnormal, which would cost time of its own.
    std::uint32_t state = 1;
    for (std::byte& b : bytes_)
      b = static_cast<std::byte>(((state = state * 1664525u + 1013904223u) >> 24 & 0x2f) | 0x10);
  }
  std::size_t count() const { return shapes_.size(); }
  const PackedShape& shape(std::size_t i) const { return shapes_[i]; }
  const std::byte* data(std::size_t i) const { return bytes_.data() + offsets_[i]; }
  std::size_t bytes() const { return bytes_.size(); }

 private:
  std::vector<PackedShape> shapes_;
  std::vector<std::size_t> offsets_;
  std::vector<std::byte> bytes_;
};

// Quantized rows of numbers, long enough for any matrix above.
struct Inputs {
  explicit Inputs(std::int64_t rows)
      : values(static_cast<std::size_t>(rows * 4096)),
        dense(values.size(), 0.5f),
        floats(values.size() / 16, 0.01f),
        sums(values.size() / 16, 3) {
    for (std::size_t i = 0; i < values.size(); i++) values[i] = static_cast<std::int8_t>(i * 37 % 255 - 127);
  }
  Activations view() const {
    return {values.data(), floats.data(), floats.data(), sums.data(), dense.data()};
  }
  std::vector<std::int8_t> values;
  std::vector<float> dense, floats;
  std::vector<std::int32_t> sums;
};

void multiply(ThreadPool& pool, const KernelTable& kernels, const Weights& weights, std::size_t i,
              const Inputs& x, std::int64_t rows, std::vector<float>& y) {
  const PackedShape& shape = weights.shape(i);
  // A few parts per thread: what a thread kept waiting by the system has not begun, another takes.
  const std::int64_t bands = band_count(shape), parts = std::min<std::int64_t>(bands / 4, 4 * pool.threads());
  pool.run(static_cast<int>(parts), [&](int part) {
    kernels.quant_matmul({shape, weights.data(i), x.view(), y.data(), shape.rows, 0, rows,
                          bands * part / parts, bands * (part + 1) / parts, false});
  });
}

void decode(benchmark::State& state, PackedFormat format, const Matrices& matrices, Level level,
            int threads) {
  const Weights weights(format, matrices);
  const Inputs x(1);
  ThreadPool pool(threads);
  const KernelTable& kernels = kernels_for(level);
  std::vector<float> y(50000);
  std::vector<Seconds> times, reads;
  for (auto _ : state) {
    reads.push_back(time_of_read(pool, weights.data(0), weights.bytes()));
    const Seconds start = bench_now();
    for (std::size_t i = 0; i < weights.count(); i++) multiply(pool, kernels, weights, i, x, 1, y);
    times.push_back(bench_now() - start);
    state.SetIterationTime(times.back().wall);
  }
  report_bandwidth(state, weights.bytes(), times, reads);
}

void batch(benchmark::State& state, PackedFormat format, Level level, std::int64_t rows) {
  const Matrices one{"", {{4096, 4096}}};
  const Weights weights(format, one);
  const Inputs x(rows);
  ThreadPool pool(2);
  const KernelTable& kernels = kernels_for(level);
  std::vector<float> y(static_cast<std::size_t>(rows * 4096));
  std::vector<Seconds> times;
  for (auto _ : state) {
    const Seconds start = bench_now();
    multiply(pool, kernels, weights, 0, x, rows, y);
    times.push_back(bench_now() - start);
    state.SetIterationTime(times.back().wall);
  }
  const double operations = 2e-9 * 4096 * 4096 * static_cast<double>(rows);
  state.counters["GOPS"] = operations / median(times, &Seconds::wall);
  state.counters["GOPS/core"] = operations / median(times, &Seconds::cpu);
}

struct Named {
  const char* name;
  PackedFormat format;
};
std::vector<Named> formats() {
  return {{"q8_0", packed_format(BlockFormat::q8_0)},
          {"q5_0", packed_format(BlockFormat::q5_0)},
          {"q5_1", packed_format(BlockFormat::q5_1)},
          {"q4_1", packed_format(BlockFormat::q4_1)},
          {"q4_0", packed_format(BlockFormat::q4_0)},
          {"q6_k", packed_format(BlockFormat::q6_k)},
          {"q5_k", packed_format(BlockFormat::q5_k)},
          {"q4_k", packed_format(BlockFormat::q4_k)},
          {"q3_k", packed_format(BlockFormat::q3_k)},
          {"q2_k", packed_format(BlockFormat::q2_k)},
          {"iq4_nl", packed_format(BlockFormat::iq4_nl)},
          {"iq4_xs", packed_format(BlockFormat::iq4_xs)},
          {"mxfp4", packed_format(BlockFormat::mxfp4)},
          {"affine4-64-bf16", packed_affine(4, 64, ScaleType::bf16)},
          {"affine4-32-f16", packed_affine(4, 32, ScaleType::f16)},
          {"affine2-64-bf16", packed_affine(2, 64, ScaleType::bf16)},
          {"affine3-64-bf16", packed_affine(3, 64, ScaleType::bf16)},
          {"affine3-32-f16", packed_affine(3, 32, ScaleType::f16)},
          {"affine5-64-bf16", packed_affine(5, 64, ScaleType::bf16)},
          {"affine6-64-bf16", packed_affine(6, 64, ScaleType::bf16)},
          {"affine8-64-bf16", packed_affine(8, 64, ScaleType::bf16)},
          {"dense-bf16", packed_dense(ScaleType::bf16)},
          {"dense-f16", packed_dense(ScaleType::f16)}};
}

const bool kRegistered = [] {
  for (const Level level : runnable_levels()) {
    if (level == Level::scalar) continue;  // the definition, not a competitor
    for (const Named& f : formats()) {
      const std::string suffix = std::string("/") + f.name + "/" + level_name(level) + "/";
      for (const int threads : {1, 2})
        for (const auto& matrices : {smol_layers(), large()}) {
          if (matrices.shapes[0].second % f.format.group != 0) continue;
          benchmark::RegisterBenchmark(
              ("decode/" + std::string(matrices.name) + suffix + std::to_string(threads)).c_str(), decode,
              f.format, matrices, level, threads)
              ->UseManualTime()
              ->Unit(benchmark::kMillisecond);
        }
      for (const std::int64_t rows : {1, 2, 4, 8, 64})
        benchmark::RegisterBenchmark(("batch" + suffix + std::to_string(rows)).c_str(), batch, f.format,
                                     level, rows)
            ->UseManualTime()
            ->Unit(benchmark::kMillisecond);
    }
  }
  return true;
}();

}  // namespace
}  // namespace godwit::kernels
