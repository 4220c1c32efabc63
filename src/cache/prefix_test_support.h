// Shared by the tests of prefixes on disk: rows of a small store, whose vectors depend on position and token only.
#pragma once

#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/mx_ops.h"
#include "cache/cold_test_support.h"
#include "cache/kv_policy.h"
#include "cache/prefix_cache.h"
#include "cache/state.h"
#include "cache/state_store_impl.h"
#include "kernels/select.h"
#include "ops/native_runtime.h"

namespace godwit::cache {

constexpr int kTestDim = 64, kTestKvHeads = 2, kTestHeads = 4;

inline LayerNeed test_need(int window = 0, Content content = Content::keys_values) {
  LayerNeed need{.content = content, .kv_heads = kTestKvHeads, .key_dim = kTestDim, .value_dim = kTestDim};
  if (content == Content::latent) need.kv_heads = 1;
  need.window = window > 0 ? WindowKind::sliding : WindowKind::full;
  need.window_size = window;
  return need;
}

inline std::vector<int> test_tokens(int count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<int> tokens;
  for (int i = 0; i < count; ++i) tokens.push_back(static_cast<int>(random() % 1000));
  return tokens;
}

inline mx::array test_vectors(std::span<const int> tokens, int begin, int heads, int salt, int dim = kTestDim) {
  std::vector<float> values;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    std::mt19937 random(static_cast<unsigned>((begin + static_cast<int>(i)) * 131 + tokens[i] * 17 + salt));
    for (int d = 0; d < heads * dim; ++d)
      values.push_back(static_cast<float>(random() % 4096) / 2048.0f - 1.0f);
  }
  return mx::array(values.data(), {static_cast<int>(tokens.size()), heads, dim});
}

// Stores tokens [row.position(), end) of `tokens` in one step.
inline void feed(const StateStore& store, Row& row, std::span<const int> tokens, int end) {
  const int begin = row.position();
  const RowSpan span{&row, end - begin};
  const auto some = tokens.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
  Step step = store.plan({&span, 1});
  AttendSpec spec;
  spec.scale = 0.125f;
  std::vector<mx::array> wanted;
  for (int layer = 0; layer < static_cast<int>(store.needs().size()); ++layer) {
    const LayerNeed& need = store.needs()[static_cast<std::size_t>(layer)];
    wanted.push_back(
        step.layer(layer).attend(test_vectors(some, begin, kTestHeads, 3 * layer, need.query_dim()),
                                 test_vectors(some, begin, need.kv_heads, 3 * layer + 1),
                                 test_vectors(some, begin, need.kv_heads, 3 * layer + 2), spec));
  }
  for (const mx::array& pending : step.pending()) wanted.push_back(pending);
  mx::eval(wanted);
  step.publish();
}

inline Row row_of(const StateStore& store, std::span<const int> tokens) {
  Row row = store.create();
  feed(store, row, tokens, static_cast<int>(tokens.size()));
  return row;
}

}  // namespace godwit::cache
