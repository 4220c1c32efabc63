// What rows cost (reference/kv.md 12, numbers in brackets). Whatever attends
// is compared with the oracle.
#include "cache/row_impl.h"
#include "cache/state_store_impl.h"
#include "state/over_all.h"

namespace godwit::cache::state_test {
namespace {

TEST(StateBudget, BytesGrowWithTokensInFullLayersStopAtTheWindowAndNeverInRecurrentOnes) {  // [19]
  const auto store = [](const StateNeeds& needs, const char* codec) {
    return StateStore(needs, parse_kv_policy(codec), NumericMode::native);
  };
  const auto full = make_setup(NumericMode::native, {"affine:4:32", 0}, Layers::one, 0);
  const auto sliding = make_setup(NumericMode::native, {"affine:4:32", 40}, Layers::one, 0);
  const auto mixed = make_setup(NumericMode::native, {"affine:4:32", 0}, Layers::with_recurrent, 0);
  const StateStore linear = store(full.needs, "affine:4:32"), window = store(sliding.needs, "affine:4:32");
  EXPECT_EQ(linear.projected_bytes(64 * 100) - linear.projected_bytes(64 * 50),
            64 * 50 * linear.bytes_per_token());
  EXPECT_EQ(window.projected_bytes(1000), window.projected_bytes(100000));
  const StateStore recurrent = store({mixed.needs[1]}, "dense");
  EXPECT_EQ(recurrent.projected_bytes(1), recurrent.projected_bytes(100000));
  // And what was named is what there is: within one block of each group.
  World world(full);
  const int r = world.create();
  feed(world, r, 200);
  EXPECT_EQ(world.store().resident_bytes(), 4 * 64 * world.store().bytes_per_token());
}

TEST(StateBudget, DecodingTakesOneBlockInSixtyFourSteps) {  // [50]
  for (const bool is_shared : {false, true}) {
    World world(make_setup(NumericMode::native, {"affine:8:64", 0}, Layers::with_twin, 0));
    const int r = world.create();
    world.append(r, 10);
    if (is_shared) world.insert(r);  // the entry and the hit share the last block
    while (world.rows() > 1) world.remove(1);
    const BlockPool& pool = *world.store().impl().choices->pool;
    const std::size_t before = pool.taken();
    for (int i = 0; i < 300; ++i) world.append(r, 1);
    EXPECT_EQ(pool.taken() - before, 4u)
        << "310 tokens end in the fifth block; the shared one goes on at its fill mark";
  }
}

}  // namespace
}  // namespace godwit::cache::state_test
