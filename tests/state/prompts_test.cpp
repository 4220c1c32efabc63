// Properties of the prompt cache, one by one (reference/kv.md 12, numbers in brackets): whatever a hit
// answers is compared with the oracle.
#include <gtest/gtest.h>

#include "cache/cold_test_support.h"
#include "state/over_all.h"

namespace godwit::cache::state_test {
namespace {

std::vector<int> with(std::vector<int> tokens, std::initializer_list<int> more) {
  tokens.insert(tokens.end(), more);
  return tokens;
}

std::vector<int> first(const std::vector<int>& tokens, int count) {
  return {tokens.begin(), tokens.begin() + count};
}

TEST(StatePrompts, HitsConsumeNothingAndGoTheirOwnWay) {  // [45], [7]
  over_all(Layers::with_full, {0, 64}, [](World& world) {
    const int r = world.create();
    feed(world, r, 100);
    world.insert(r);  // and is a row of its own
    const std::vector<int> known = world.row(r).tokens;
    const std::string space = world.space_of(r);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(world.find(with(known, {70 + i}), space), 100);
    for (int i = 0; i < world.rows(); ++i) world.row(i).stream = i;
    for (int i = 0; i < world.rows(); ++i) world.append(i, 3);
    EXPECT_EQ(world.find(with(known, {71}), space), 100);
    world.append(world.rows() - 1, 30);
    EXPECT_EQ(world.find(with(known, {71}), "another " + space), 0) << "spaces know nothing of each other";
  });
}

TEST(StatePrompts, AtLeastOneTokenIsLeft) {  // [45]
  World world(make_setup(NumericMode::native, {"dense:f32", 0}, Layers::one, 0));
  const int r = world.create();
  feed(world, r, 70);
  world.insert(r);
  const std::vector<int> known = world.row(r).tokens;
  EXPECT_EQ(world.find(known), 69);
  EXPECT_EQ(world.find(first(known, 65)), 64);
  EXPECT_EQ(world.find(first(known, 1)), 0);
  EXPECT_EQ(world.find({}), 0);
  for (int i = 0; i < world.rows(); ++i) world.append(i, 2);
}

TEST(StatePrompts, NothingIsServedBelowWhereARowTurned) {  // [45]
  for (const Pair& pair : {Pair{"affine:4:32", 0}, Pair{"turbo:8:3", 0}}) {
    World world(make_setup(NumericMode::native, pair, Layers::one, 64));
    const int r = world.create();
    feed(world, r, 100);
    world.insert(r);
    const std::vector<int> known = world.row(r).tokens;
    for (const int count : {30, 63, 64}) EXPECT_EQ(world.find(first(known, count)), 0) << count;
    EXPECT_EQ(world.find(first(known, 65)), 64);
    EXPECT_EQ(world.find(with(first(known, 80), {70})), 80);
    for (int i = 0; i < world.rows(); ++i) world.append(i, 2);
  }
}

TEST(StatePrompts, AnEntryStaysWhatItWasWhateverItsRowDoes) {  // [45], [51]
  over_all(Layers::with_twin, {0, 1000}, [](World& world) {
    const int r = world.create();
    feed(world, r, 50);
    world.insert(r);
    const std::string space = world.space_of(r);
    const std::vector<int> known = world.row(r).tokens;
    world.append(r, 10);  // in place, behind the entry
    if (world.truncate(r, std::max(30, world.row(r).row.minimum_reusable_length()))) world.row(r).stream = 2;
    world.append(r, 20);
    EXPECT_EQ(world.find(with(known, {70}), space), 50);
    world.row(world.rows() - 1).stream = 1;
    world.append(world.rows() - 1, 5);
    world.append(r, 1);
    EXPECT_EQ(world.find(with(known, {70}), space), 50);
    world.append(world.rows() - 1, 30);
  });
}

TEST(StatePrompts, AWindowThatMovedOnServesNothingBehindIt) {
  World world(make_setup(NumericMode::native, {"dense:f32", 8}, Layers::with_full, 0));
  const int r = world.create();
  feed(world, r, 200);
  world.insert(r);
  const std::vector<int> known = world.row(r).tokens;
  for (const int count : {10, 64, 65, 128, 129, 150, 193, 199}) {
    const int found = world.find(with(first(known, count), {70}));
    // The last block holds [192, 200): 200 - 8 is there, and a prefix of 193 needs 185.
    EXPECT_EQ(found, 0) << count;
  }
  EXPECT_EQ(world.find(with(known, {70})), 200);
  for (int i = 0; i < world.rows(); ++i) world.append(i, 2);
}

TEST(StatePrompts, WhatCannotBeCutServesLongerPromptsOnly) {  // [46]
  const auto holds = [](World& world) {
    const int r = world.create();
    feed(world, r, 40);
    world.insert(r);  // the snapshot at the end of the prompt, one before its last token
    const std::string space = world.space_of(r);
    const std::vector<int> prompt = with(world.row(r).tokens, {70});
    world.append(r, 90);
    world.insert(r);
    const std::vector<int> all = world.row(r).tokens;
    EXPECT_EQ(world.find(first(all, 130), world.space_of(r)),
              world.setup().mode == NumericMode::native ? 40 : 0);
    EXPECT_EQ(world.find(with(all, {70}), world.space_of(r)), 130);
    EXPECT_EQ(world.find(prompt, space), 40) << "the prompt sent again";
    for (int i = 0; i < world.rows(); ++i) world.append(i, 1);
  };
  World recurrent(make_setup(NumericMode::native, {"affine:4:32", 0}, Layers::with_recurrent, 0));
  holds(recurrent);
  World ring(make_setup(NumericMode::reference, {"dense:f32", 8}, Layers::with_full, 0));
  holds(ring);
}

TEST(StatePrompts, ANewProcessGoesOnFromTheDisk) {  // [18], [48]
  for (const NumericMode mode : kModes)
    for (const Pair& pair : kSome)
      for (const Layers layers : {Layers::with_full, Layers::with_latent, Layers::with_recurrent})
        for (const int start : {0, 64}) {
          if (mode == NumericMode::reference && layers == Layers::with_recurrent) continue;
          const TestFolder folder("prompts");
          World world(make_setup(mode, pair, layers, start), folder.cache());
          const int r = world.create();
          feed(world, r, 60);
          world.append(r, 1), world.append(r, 1), feed(world, r, 80);
          world.insert(r);
          const std::vector<int> known = world.row(r).tokens;
          const std::string space = world.space_of(r);
          const auto plan = world.row(r).plan;
          world.restart();
          ASSERT_EQ(world.find(with(known, {70}), space), 142) << world.setup().to_string();
          // In `reference` too with the bits of a row that has seen the same chunks.
          world.row(0).plan = plan;
          world.row(0).is_exact = true;
          world.check_fresh_rows();
          world.read(0, 1);
          world.append(0, 1);
          world.append(0, 20);
          world.check_rows();
          world.finish();
        }
}

TEST(StatePrompts, BytesStayBelowTheCapAndTheLeastRecentlyUsedLeave) {  // [47]
  World world(make_setup(NumericMode::native, {"affine:4:32", 0}, Layers::with_twin, 0));
  const std::size_t each = 64 * world.store().bytes_per_token();
  PrefixCache cache(world.store(), {.cap_bytes = 6 * each, .identity = ""});
  const auto known = [&](int r) {
    const auto found = cache.find(with(world.row(r).tokens, {70}));
    return found ? found->position() : 0;
  };
  for (int stream = 0; stream < 3; ++stream) {
    const int r = world.create(stream);
    feed(world, r, 100);  // two blocks
    cache.insert(world.row(r).row, world.row(r).tokens);
    EXPECT_LE(cache.stats().bytes, 6 * each);
  }
  for (int r = 0; r < 3; ++r) EXPECT_EQ(known(r), 100);
  EXPECT_EQ(known(0), 100);  // used last
  const int late = world.create(6);
  feed(world, late, 100);
  cache.insert(world.row(late).row, world.row(late).tokens);
  EXPECT_EQ(cache.stats().bytes, 6 * each);
  EXPECT_EQ(cache.stats().evicted, 2u);
  EXPECT_EQ(known(1), 0) << "the oldest use";
  for (const int r : {0, 2, late}) EXPECT_EQ(known(r), 100) << r;
  for (int r = 0; r < world.rows(); ++r) world.append(r, 1);  // rows keep what they hold
  cache.clear();
  EXPECT_EQ(cache.stats().bytes, 0u);
  while (world.rows() > 0) world.remove(0);
  EXPECT_EQ(world.store().resident_bytes(), 0u);
}

}  // namespace
}  // namespace godwit::cache::state_test
