#include "cache/kv_blocks.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "cache/state.h"

namespace godwit::cache {
namespace {

const LayerNeed kNeed{.kv_heads = 2, .key_dim = 16, .value_dim = 16};
constexpr std::size_t kBlock = 2 * 2 * 16 * 64 * 4;

float* keys(const BlockTable& table, int block) { return static_cast<float*>(table.keys()[block]); }

TEST(KvBlocks, RoomIsWholeBlocksAndOnlyWhatIsMissingIsMade) {
  BlockTable table(kNeed, kernels::KvType::f32);
  table.make_room(0, 65);
  EXPECT_EQ(table.bytes(), 2 * kBlock);
  float* const first = keys(table, 0);
  table.make_room(65, 128);
  EXPECT_EQ(table.bytes(), 2 * kBlock);
  table.make_room(128, 129);
  EXPECT_EQ(table.bytes(), 3 * kBlock);
  EXPECT_EQ(keys(table, 0), first);
  EXPECT_EQ(BlockTable(kNeed, kernels::KvType::bf16).block_bytes(), kBlock / 2);
}

TEST(KvBlocks, ASharedBlockIsCopiedByTheFirstWriterAndThenOwned) {
  BlockTable table(kNeed, kernels::KvType::f32);
  table.make_room(0, 100);
  keys(table, 0)[0] = 1;
  keys(table, 1)[0] = 2;
  BlockTable fork = table;
  EXPECT_EQ(keys(fork, 1), keys(table, 1));
  fork.make_room(100, 101);
  EXPECT_EQ(keys(fork, 0), keys(table, 0)) << "a full block stays shared";
  ASSERT_NE(keys(fork, 1), keys(table, 1));
  EXPECT_EQ(keys(fork, 1)[0], 2) << "the copy has what was stored";
  float* const own = keys(table, 1);
  table.make_room(100, 101);
  EXPECT_EQ(keys(table, 1), own) << "nobody else holds it any more";
}

TEST(KvBlocks, KeepingForgetsWholeBlocksAtBothEnds) {
  BlockTable table(kNeed, kernels::KvType::f32);
  table.make_room(0, 5 * 64);
  table.keep(63, 200);
  EXPECT_EQ(table.bytes(), 4 * kBlock);
  EXPECT_EQ(table.first_position(), 0);
  table.keep(130, 200);
  EXPECT_EQ(table.bytes(), 2 * kBlock);
  EXPECT_EQ(table.first_position(), 128);
  EXPECT_EQ(table.keys()[1], nullptr);
}

TEST(NativeState, RefusesHeadsThatTheKernelsDoNotTake) {
  for (const int dim : {8, 24, 528}) {
    LayerNeed need = kNeed;
    need.key_dim = need.value_dim = dim;
    EXPECT_THROW(StateStore({need}, {}, NumericMode::native), Error) << dim;
  }
  LayerNeed unequal = kNeed;
  unequal.value_dim = 32;
  EXPECT_THROW(StateStore({unequal}, {}, NumericMode::native), Error);
}

TEST(NativeState, ARowIsPlannedOnceAndAStepNeedsItsTokensStored) {
  const StateStore store({kNeed}, {}, NumericMode::native);
  Row row = store.create();
  const RowSpan twice[] = {{&row, 1}, {&row, 1}};
  EXPECT_THROW(store.plan(twice), Error);
  const RowSpan span{&row, 3};
  {
    Step step = store.plan({&span, 1});
    EXPECT_EQ(step.token_count(), 3);
    EXPECT_THROW(step.publish(), Error);
    EXPECT_THROW(store.plan({&span, 1}), Error);
  }
  EXPECT_EQ(row.position(), 0);
  EXPECT_EQ(row.bytes(), 0u);
  EXPECT_EQ(row.signature(), "native dense 1*full(2x16,16)");
  EXPECT_EQ(store.bytes_per_token(), 2u * 2 * 16 * 4);
}

}  // namespace
}  // namespace godwit::cache
