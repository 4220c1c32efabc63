#include "kernels/level.h"

#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "base/error.h"
#include "kernels/kernel_test_support.h"

namespace godwit::kernels {
namespace {

#if defined(__linux__) && defined(__x86_64__)
// The kernel's own view of the processor: flags that the operating system does not support are left out
// there.
std::set<std::string> flags_of_this_machine() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line))
    if (line.rfind("flags", 0) == 0) {
      std::istringstream words(line.substr(line.find(':') + 1));
      return {std::istream_iterator<std::string>(words), {}};
    }
  return {};
}

bool has_all(const std::set<std::string>& flags, std::initializer_list<const char*> wanted) {
  for (const char* flag : wanted)
    if (!flags.count(flag)) return false;
  return true;
}

TEST(Level, detection_agrees_with_the_operating_system) {
  const auto flags = flags_of_this_machine();
  ASSERT_FALSE(flags.empty());
  const bool avx2 = has_all(flags, {"avx2", "fma", "f16c"});
  const bool avx512 = avx2 && has_all(flags, {"avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512_vnni"});
  EXPECT_TRUE(is_runnable(Level::scalar));
  EXPECT_EQ(is_runnable(Level::avx2), avx2);
  EXPECT_EQ(is_runnable(Level::avx512), avx512);
  EXPECT_FALSE(is_runnable(Level::neon));
  EXPECT_EQ(best_level(), avx512 ? Level::avx512 : avx2 ? Level::avx2 : Level::scalar);
}
#endif

#if defined(__aarch64__)
TEST(Level, aarch64_runs_scalar_and_neon) {
  EXPECT_EQ(runnable_levels(), (std::vector{Level::scalar, Level::neon}));
  EXPECT_EQ(best_level(), Level::neon);
}
#endif

TEST(Level, names_go_both_ways_and_an_unknown_one_is_an_error) {
  for (const Level level : kLevels) EXPECT_EQ(level_from_name(level_name(level)), level);
  EXPECT_THROW(level_from_name("sse9"), Error);
  EXPECT_THROW(level_from_name(""), Error);
}

TEST(Level, a_level_that_cannot_run_is_refused_instead_of_replaced) {
  for (const Level level : kLevels) {
    if (is_runnable(level)) {
      EXPECT_EQ(kernels_for(level).level, level);
    } else {
      EXPECT_THROW(kernels_for(level), Error);
    }
  }
}

// Each kernel says which body ran; one address for two levels would be a substitution.
void expect_own_bodies(Level level) {
  const KernelTable& table = kernels_for(level);
  float x[32] = {}, sums[1], scales[2], y[16] = {}, one[16] = {};
  std::int8_t values[32];
  std::int32_t code_sums[2];
  std::int64_t index = 0;
  EXPECT_EQ(table.rms_norm({x, x, x, 1, 16, 16, 16, 1e-5f}), level);
  EXPECT_EQ(table.rope({x, one, one, 1, 1, 16, 16, 16}), level);
  EXPECT_EQ(table.gated({Activation::silu, x, x, x, 1, 16, 16, 16, 16}), level);
  EXPECT_EQ(table.add({x, x, x, 16}), level);
  EXPECT_EQ(table.argmax({x, 16, &index}), level);
  EXPECT_EQ(table.quantize_rows({x, 1, 32, 32, values, scales, sums, code_sums}), level);
  const PackedShape shape{packed_format(BlockFormat::q8_0), 16, 32};
  const Buffer<std::byte> packed(packed_bytes(shape));
  EXPECT_EQ(
      table.quant_matmul({shape, packed.data(), {values, scales, sums, code_sums}, y, 16, 0, 1, 0, 1, false}),
      level);
  const Interval none{0, 0};
  const KvPlane key_plane{.heads = 1, .dim = 16}, value_plane{.heads = 1, .dim = 16, .offset = 4096};
  EXPECT_EQ(table.attention({x, y, &none, nullptr, key_plane, value_plane, 1, 0, 1, 0, 1, 16, 16, 1.0f}),
            level);
  EXPECT_EQ(table.attention_merge({nullptr, y, &none, 0, 0, 1, 16, 0, 1, 0, 1, 16}), level);
  const Buffer<std::byte> block(8192);
  Buffer<float> key_tile(1024), value_tile(1024), head(64);
  EXPECT_EQ(
      table.decode_kv({block.data(), key_plane, value_plane, 0, 0, 64, key_tile.data(), value_tile.data()}),
      level);
  EXPECT_EQ(table.restore_values({head.data(), 1, 64, 64}), level);
  EXPECT_EQ(table.short_conv({x, nullptr, x, y, 16, 2, 0, 1, 0, 16, 16, 16}), level);
  EXPECT_EQ(table.unit_length({y, 1, 16, 16, 1e-6f, 1.0f}), level);
  EXPECT_EQ(table.delta_gates({x, x, x, x, y, one, 1, 16}), level);
  EXPECT_EQ(table.delta_rule({x, x, x, one, one, nullptr, y, nullptr, 1, 1, 1, 16, 1, 16, 16, 0, 1}), level);
  const std::int32_t first = 0;
  EXPECT_EQ(table.row_dots({x, x, y, 1, 16, 1, 16, 1}), level);
  EXPECT_EQ(table.softmax({x, y, 1, 16}), level);
  EXPECT_EQ(table.sigmoid({x, y, 16}), level);
  EXPECT_EQ(table.weighted_sum({x, &first, one, 1, y, 16}), level);
  for (const Level other : runnable_levels()) {
    if (other == level) continue;
    const KernelTable& theirs = kernels_for(other);
    EXPECT_NE(table.rms_norm, theirs.rms_norm);
    EXPECT_NE(table.rope, theirs.rope);
    EXPECT_NE(table.gated, theirs.gated);
    EXPECT_NE(table.add, theirs.add);
    EXPECT_NE(table.argmax, theirs.argmax);
    EXPECT_NE(table.quantize_rows, theirs.quantize_rows);
    EXPECT_NE(table.quant_matmul, theirs.quant_matmul);
    EXPECT_NE(table.attention, theirs.attention);
    EXPECT_NE(table.attention_merge, theirs.attention_merge);
    EXPECT_NE(table.decode_kv, theirs.decode_kv);
    EXPECT_NE(table.restore_values, theirs.restore_values);
    EXPECT_NE(table.short_conv, theirs.short_conv);
    EXPECT_NE(table.unit_length, theirs.unit_length);
    EXPECT_NE(table.delta_gates, theirs.delta_gates);
    EXPECT_NE(table.delta_rule, theirs.delta_rule);
    EXPECT_NE(table.row_dots, theirs.row_dots);
    EXPECT_NE(table.softmax, theirs.softmax);
    EXPECT_NE(table.sigmoid, theirs.sigmoid);
    EXPECT_NE(table.weighted_sum, theirs.weighted_sum);
  }
}

TEST(Level, scalar_runs_its_own_bodies) { expect_own_bodies(Level::scalar); }

// Not a missing dependency but a statement about this machine: the report must not count the level as tested.
TEST(Level, avx2_runs_its_own_bodies) {
  if (!is_runnable(Level::avx2)) GTEST_SKIP() << "NOT TESTED: this machine cannot run avx2";
  expect_own_bodies(Level::avx2);
}
TEST(Level, avx512_runs_its_own_bodies) {
  if (!is_runnable(Level::avx512)) GTEST_SKIP() << "NOT TESTED: this machine cannot run avx512";
  expect_own_bodies(Level::avx512);
}
TEST(Level, neon_runs_its_own_bodies) {
  if (!is_runnable(Level::neon)) GTEST_SKIP() << "NOT TESTED: this machine cannot run neon";
  expect_own_bodies(Level::neon);
}

}  // namespace
}  // namespace godwit::kernels
