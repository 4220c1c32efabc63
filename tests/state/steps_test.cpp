// Properties of Steps, one by one: rounds, turns, and steps that never end (reference/kv.md 12, numbers in
// brackets). Whatever attends is compared with the oracle.
#include "cache/row_impl.h"
#include "cache/state_store_impl.h"
#include "state/over_all.h"

namespace godwit::cache::state_test {
namespace {

TEST(StateSteps, CommittedSpansAreTheirSingleSteps) {  // [25]
  over_all(Layers::one, {0, 1000}, [](World& world) {
    for (const int prefix : {0, 1, 63, 64, 130})
      for (const int count : {1, 2, 3, 4}) {
        const int r = world.create();
        feed(world, r, prefix);
        world.append(r, count, SpanKind::committed);
        // A fork fed one by one must go on with the same bits: check_fresh_rows() does that for the shortest
        // row.
        world.append(r, 1);
        world.check_fresh_rows();
        world.remove(r);
      }
  });
}

TEST(StateSteps, RoundsKeepWhatTheyAreTold) {  // [40], [42]
  for (const Layers layers : {Layers::with_full, Layers::with_latent, Layers::with_recurrent})
    over_all(layers, {0, 1000}, [&](World& world) {
      if (world.setup().mode == NumericMode::reference && layers == Layers::with_recurrent) return;
      for (const int before : {0, 5, 7, 21, 62}) {
        const int r = world.create();
        feed(world, r, before);
        for (int round = 0; round < 12; ++round) {
          world.begin(r);
          for (const int tokens : {2, 3, 1 + round % 3}) world.append(r, tokens);
          world.rollback(r, round * 5 % 6);
          if (round % 4 == 0) world.append(r, 1);
        }
        world.begin(r);
        world.append(r, 4);
        world.commit(r);
        world.append(r, 1);
      }
    });
}

TEST(StateSteps, ADraftNeverTurnsARow) {  // [37], [36]
  over_all(Layers::one, {5, 64}, [](World& world) {
    const int start = world.setup().policy.start, r = world.create();
    feed(world, r, start - 2);
    world.begin(r);
    const int most = world.row(r).row.longest_span(SpanKind::committed);
    EXPECT_TRUE(most == 2 || !world.setup().is_encodable()) << most;
    world.append(r, 2);
    EXPECT_FALSE(world.row(r).row.impl().encoded);
    world.rollback(r, 1);
    EXPECT_FALSE(world.row(r).row.impl().encoded);
    world.append(r, 1);
    // Now it stands at its start: a round begins with the row in its codec.
    world.begin(r);
    EXPECT_EQ(world.row(r).row.impl().encoded, world.setup().is_encodable());
    world.append(r, 3);
    world.rollback(r, 0);
    world.append(r, 3);
  });
}

TEST(StateSteps, TheLongestSpanEndsAtTheStartOfEachRow) {  // [36]
  World world(make_setup(NumericMode::native, {"affine:4:32", 0}, Layers::one, 5));
  int least = INT_MAX;
  for (const int length : {2, 4, 7}) {
    const int r = world.create();
    feed(world, r, length);
    least = std::min(least, world.row(r).row.longest_span());
  }
  EXPECT_EQ(least, 1);
  EXPECT_EQ(world.row(0).row.longest_span(), 3);
  EXPECT_EQ(world.row(2).row.longest_span(), INT_MAX);
}

TEST(StateSteps, TheTurnIsTheSameForEveryChunkAndDraft) {  // [33]
  for (const Pair& pair : kSome)
    for (const int start : {0, 1, 63, 64, 65, 100}) {
      World world(make_setup(NumericMode::native, pair, Layers::with_full, start));
      for (const int chunk : {1, 7, 64, 150}) {
        const int r = world.create();
        for (int at = 0; at < 140; at = world.row(r).length()) feed(world, r, std::min(chunk, 140 - at));
      }
      const int drafted = world.create();
      while (world.row(drafted).length() < 130) {
        world.begin(drafted);
        world.append(drafted, std::min(4, world.longest(drafted, SpanKind::causal)));
        world.rollback(drafted, std::min(2, world.row(drafted).length() - world.row(drafted).round_start));
      }
      world.check_rows();
    }
}

TEST(StateSteps, BlocksEncodedAheadFollowWhatIsWrittenOver) {  // [33]
  World world(make_setup(NumericMode::native, {"affine:4:32", 0}, Layers::one, 100));
  const int r = world.create();
  world.append(r, 80);
  world.append(r, 1);  // the first block is encoded by now
  world.truncate(r, 30);
  world.row(r).stream = 2;
  world.append(r, 70);
  world.append(r, 5);
}

TEST(StateSteps, StartNothingHoldsOnlyTheLengthItHad) {  // a row emptied is a fresh row
  over_all(Layers::one, {0}, [](World& world) {
    const int r = world.create();
    feed(world, r, 20);
    world.append(r, 1);
    if (world.truncate(r, 0)) world.append(r, 12);
    world.append(r, 1);
  });
}

TEST(StateSteps, DroppedStepsLeaveNothing) {  // [12]
  over_all(Layers::with_full, {0, 64}, [](World& world) {
    const int r = world.create();
    for (const int length : {3, 60, 64, 100}) {
      feed(world, r, length - world.row(r).length());
      ASSERT_TRUE(world.fork(r, length, 1));
      for (const End end : {End::drop_at_once, End::drop_after_one, End::drop_evaluated, End::fail_in_a_layer,
                            End::publish_too_early})
        for (const int tokens : {1, 4, 70})
          world.step({{r, std::min(tokens, world.longest(r, SpanKind::causal)), {}, {}}}, end);
      for (int i = 0; i < world.rows(); ++i) world.append(i, 1);
    }
  });
}

TEST(StateSteps, NothingHasHappenedWhenBlocksRunOut) {  // [12]
  over_all(Layers::with_full, {0, 64}, [](World& world) {
    for (const int length : {60, 64, 100}) {
      const int r = world.create();
      feed(world, r, length);
      // The fork writes into the shared block first: what it wrote is not the origin's to give back.
      ASSERT_TRUE(world.fork(r, length, 2));
      world.append(r + 1, 3);
      for (int count = 1; world.step_starved({{r, 3, {}, {}}}, count); ++count) {
        ASSERT_LT(count, 20);
        world.read(r, 1);
        world.read(r + 1, 1);
      }
      world.append(r, 1);
      world.append(r + 1, 1);
      while (world.rows() > 0) world.remove(0);
    }
  });
}

TEST(StateSteps, RowsOfOneStepStayAsTheyWereWhenBlocksRunOut) {  // [12]
  World world(make_setup(NumericMode::native, {"affine:8:64", 40}, Layers::with_full, 0));
  for (const int length : {60, 64, 10}) feed(world, world.create(length % 3), length);
  for (int count = 1; world.step_starved({{0, 70, {}, {}}, {1, 70, {}, {}}, {2, 1, {}, {}}}, count); ++count)
    world.check_rows();
  for (int r = 0; r < 3; ++r) world.append(r, 1);
}

TEST(StateSteps, PositionsAreTakenOnceForTheWholeStep) {  // [14], [44]
  over_all(Layers::with_full, {0}, [](World& world) {
    const int r = world.create();
    world.append(r, 9);
    const RowSpan span{&world.row(r).row, 3};
    Step step = world.store().plan({&span, 1});
    std::vector<int> list = world.row(r).tokens;
    list.insert(list.end(), {1, 2, 3});
    for (int layer = 0; layer < 2; ++layer) {
      EXPECT_EQ(step.row_offsets()[0], 9) << "whatever other layers have stored";
      const auto part = [&](Plane plane) { return packed(world.setup(), list, 9, 3, layer, plane); };
      step.layer(layer).attend(part(Plane::queries), part(Plane::keys), part(Plane::values),
                               world.setup().spec(layer));
    }
    EXPECT_EQ(step.row_offsets()[0], 9);
    EXPECT_EQ(world.store().needs().size(), 2u) << "one entry for each owner";
  });
}

}  // namespace
}  // namespace godwit::cache::state_test
