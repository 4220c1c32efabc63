// Weights of a test as a store, and a mixer's branch over one row in either mode.
#pragma once

#include <gtest/gtest.h>
#include <mlx/io.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mx_ops.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/weight_store.h"
#include "nn/branch.h"
#include "ops/executor.h"

namespace godwit::nn {

// With a pool in native mode.
inline checkpoint::WeightScope scope_of(const std::unordered_map<std::string, mx::array>& tensors,
                                        ThreadPool* pool = nullptr) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("godwit_nn_" + std::to_string(::getpid()) + "_" +
                     testing::UnitTest::GetInstance()->current_test_info()->name() + ".safetensors");
  mx::save_safetensors(path.string(), tensors);
  auto entries = checkpoint::read_safetensors(std::make_shared<const FileMap>(path));
  std::filesystem::remove(path);  // mapped already
  auto store =
      std::make_shared<checkpoint::WeightStore>(std::move(entries), checkpoint::QuantizationMap(), path.string());
  if (pool) store->pack_with(*pool);
  return {store, ""};
}

// Matrices in bf16: what native mode packs, and f32 of the same values.
inline std::unordered_map<std::string, mx::array> with_matrices_in(mx::Dtype dtype,
                                                                   std::unordered_map<std::string, mx::array> tensors) {
  for (auto& [name, tensor] : tensors)
    if (tensor.ndim() == 2) tensor = mx::astype(mx::astype(tensor, mx::bfloat16), dtype);
  return tensors;
}

// x [tokens, hidden] f32 in spans over one row of a state of its own: [tokens, hidden]. With a runtime in native mode.
inline std::vector<float> through(const MixerBranch& branch, const cache::LayerNeed& need, const mx::array& x,
                                  const std::vector<int>& spans, ops::NativeRuntime* runtime = nullptr) {
  const cache::StateStore states({need}, {}, runtime ? NumericMode::native : NumericMode::reference, runtime);
  cache::Row row = states.create();
  std::vector<float> all;
  int begin = 0;
  for (const int tokens : spans) {
    const cache::RowSpan span{&row, tokens};
    cache::Step step = states.plan({&span, 1});
    mx::array part = mx::contiguous(mx::slice(x, {begin, 0}, {begin + tokens, x.shape(1)}));
    part.eval();
    if (runtime) {
      ops::Executor executor(*runtime);
      const auto out = executor.run(branch(part, step, step.layer(0)), step.native_layers());
      all.insert(all.end(), out.begin(), out.end());
    } else {
      const mx::array out = mx::contiguous(branch(part, step, step.layer(0)));
      std::vector<mx::array> outputs = step.pending();
      outputs.push_back(out);
      mx::eval(outputs);
      all.insert(all.end(), out.data<float>(), out.data<float>() + out.size());
    }
    step.publish();
    begin += tokens;
  }
  return all;
}

// Root mean square of the difference over that of `want`.
inline double relative_error(const std::vector<float>& got, const std::vector<float>& want) {
  EXPECT_EQ(got.size(), want.size());
  double error = 0, squares = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    error += std::pow(double{got[i]} - want[i], 2);
    squares += std::pow(double{want[i]}, 2);
  }
  return std::sqrt(error / squares);
}

}  // namespace godwit::nn
