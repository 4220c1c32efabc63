// Properties of rows, one by one: forks, cuts, lists, reads (reference/kv.md 12, numbers in brackets).
// Whatever attends is compared with the oracle.
#include "cache/row_impl.h"
#include "cache/state_store_impl.h"
#include "state/over_all.h"

namespace godwit::cache::state_test {
namespace {

TEST(StateRows, GrowthNeverChangesWhatIsThere) {  // [3]
  over_all(Layers::one, {0, 100}, [](World& world) {
    for (const int length : {63, 64, 65, 127, 128, 129}) {
      const int r = world.create();
      feed(world, r, length);
      for (int i = 0; i < 3; ++i) world.append(r, 1);
      world.read(r, 1);
    }
  });
}

TEST(StateRows, CutAndFedAgainIsNeverCut) {  // [2]
  over_all(Layers::with_twin, {0, 100}, [](World& world) {
    const int r = world.create();
    feed(world, r, 70);
    for (const int back : {1, 3, 6, 7, 40, 69}) {
      if (world.truncate(r, world.row(r).length() - back)) feed(world, r, back);
      world.append(r, 1);
    }
    if (world.truncate(r, 0)) feed(world, r, 80);
    world.append(r, 2);
  });
}

TEST(StateRows, ReadsSeeAWholeWindowAtEveryLength) {  // [5], [43]
  for (const NumericMode mode : kModes)
    for (const int window : {8, 40, 64, 100}) {
      World world(make_setup(mode, {"dense:f32", window}, Layers::one, 0));
      const int r = world.create();
      for (int i = 0; i < 180; ++i) {
        world.append(r, 1);
        world.read(r, 1);
        world.read(r, 2);
      }
    }
}

TEST(StateRows, AWrappedWindowIsCutAsOftenAsItAllows) {  // [20]
  for (const NumericMode mode : kModes)
    for (const int window : {8, 40})
      for (const int length : {71, 72, 73, 128 + window - 1, 128 + window, 170}) {
        World world(make_setup(mode, {"dense:f32", window}, Layers::one, 0));
        const int r = world.create();
        for (int i = 0; i < length; ++i) world.append(r, 1);
        for (int i = 0; i < 5; ++i) world.truncate(r, world.row(r).length() - 1);
        world.read(r, 1);
        world.append(r, 1);
        world.append(r, 6);
        for (int i = 0; i < 5; ++i) world.truncate(r, world.row(r).row.minimum_reusable_length());
        world.append(r, 3);
        world.check_rows();
      }
}

// The oracle's ring holds the newest 8 columns when the row turns, the blocks hold more.
TEST(StateRows, AWindowCutAfterItTurnedIsAsFarBackAsItSays) {  // [20], [33]
  over_all(Layers::one, {0}, [](World& world) {
    for (const int length : {19, 75, 119}) {
      const int r = world.create();
      feed(world, r, length, SpanKind::committed);
      world.step({{r, 1, {}, {}}}, End::drop_at_once);
      for (int i = 0; i < 4; ++i) {
        world.truncate(r, world.row(r).length() - 1);
        world.read(r, 1);
      }
      world.append(r, 1);
      world.append(r, 3);
    }
  });
}

TEST(StateRows, ForksShareBlocksAndGoTheirOwnWay) {  // [7], [51]
  over_all(Layers::with_full, {0, 64}, [](World& world) {
    const int r = world.create();
    feed(world, r, 100);
    const std::size_t before = world.store().resident_bytes();
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(world.fork(r, 100, 1 + i % 2));
    EXPECT_EQ(world.store().resident_bytes(), before) << "a fork moves no byte";
    for (int i = 0; i < world.rows(); ++i) world.append(i, 1);
    for (int i = 0; i < world.rows(); ++i) world.append(i, 40);
    world.remove(0);
    for (int i = 0; i < world.rows(); ++i) world.append(i, 1);
  });
}

TEST(StateRows, TheListOfRowsMayBeCutAndPutInAnyOrder) {  // [6], [8]
  over_all(Layers::one, {0}, [](World& world) {
    for (const int length : {5, 0, 90, 64}) {
      const int r = world.create(length % 3);
      if (length > 0) feed(world, r, length);
    }
    world.rotate();
    world.remove(2);
    world.rotate();
    for (int i = 0; i < world.rows(); ++i) world.append(i, 2);
  });
}

TEST(StateRows, RowsOfOneStepAreEachAlone) {  // [11], [34], native: the oracle knows one row only
  for (const Pair& pair : kSome) {
    World world(make_setup(NumericMode::native, pair, Layers::with_recurrent, 64));
    for (const int length : {63, 1, 64, 100}) feed(world, world.create(length % 3), length);
    for (int i = 0; i < 70; ++i) world.step({{0, 1, {}, {}}, {1, 1, {}, {}}, {2, 1, {}, {}}, {3, 1, {}, {}}});
    world.step({{3, 7, {}, {}}, {1, 1, SpanKind::committed, {}}, {0, 30, SpanKind::bidirectional, {}}});
  }
}

TEST(StateRows, DonorsStayAsTheyWereTaken) {  // [4], [43]
  over_all(Layers::with_full, {0, 64}, [](World& world) {
    const int r = world.create();
    for (const int length : {10, 60, 64, 90, 130}) {
      feed(world, r, length - world.row(r).length());
      world.take_donor(r);
    }
    world.read_donors();
    if (world.truncate(r, world.row(r).row.minimum_reusable_length())) world.row(r).stream = 2;
    feed(world, r, 30);
    world.read_donors();
    world.remove(r);
    world.read_donors();
  });
}

TEST(StateRows, ARowOfAnotherStoreIsRefused) {  // [13]
  const auto setup = make_setup(NumericMode::native, {"affine:4:32", 0}, Layers::one, 0);
  const StateStore one(setup.needs, setup.policy, setup.mode), other(setup.needs, setup.policy, setup.mode);
  Row row = one.create();
  const RowSpan span{&row, 1};
  EXPECT_THROW(other.plan({&span, 1}), Error);
  EXPECT_THROW(other.read({&span, 1}), Error);
  PrefixCache cache(other, {.cap_bytes = 1 << 20, .identity = ""});
  EXPECT_THROW(cache.insert(row, {}), Error);
  EXPECT_EQ(row.position(), 0);
}

}  // namespace
}  // namespace godwit::cache::state_test
