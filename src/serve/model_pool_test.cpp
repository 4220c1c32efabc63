#include "serve/model_pool.h"

#include <atomic>
#include <thread>

#include "support/serve_fixture.h"

namespace godwit::serve {
namespace {

using namespace std::chrono_literals;

// Models that consist of a name; what is loaded is counted.
struct PoolTest : ::testing::Test {
  struct Fake {
    Fake(PoolTest& test_in, const std::string& id) : test(test_in) {
      model.id = id;
      model.context_length = 7;
      test.loaded += 1;
      test.most_loaded = std::max(test.most_loaded.load(), test.loaded.load());
      test.loads += 1;
    }
    ~Fake() { test.loaded -= 1; }
    PoolTest& test;
    ServedModel model;
    ScriptedGenerator generator;
    LoadedModel face{model, generator};
  };

  PoolModel fake(const std::string& id, std::uint64_t bytes = 1) {
    PoolModel model;
    model.known.id = id;
    model.known.aliases = {"the-" + id};
    model.bytes = bytes;
    model.load = [this, id] {
      while (holds_back) std::this_thread::sleep_for(1ms);
      if (id == breaks) fail(ErrorCode::corrupt_file, "test", "{} is broken", id);
      const auto made = std::make_shared<Fake>(*this, id);
      return std::shared_ptr<const LoadedModel>(made, &made->face);
    };
    return model;
  }
  static std::string names(const ModelPool& pool) {
    std::string out;
    for (const ModelEntry& entry : pool.list()) out += entry.id + (entry.is_loaded ? "+ " : "- ");
    return out;
  }
  template <typename Condition>
  static bool soon(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (!condition() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(2ms);
    return condition();
  }

  std::atomic<int> loaded = 0, most_loaded = 0, loads = 0;
  std::atomic<bool> holds_back = false;
  std::string breaks;
  const std::function<void()> wait = [] {};
};

TEST_F(PoolTest, AModelIsLoadedOnceOnFirstUseAndFoundByItsNames) {
  ModelPool pool({fake("a"), fake("b")}, {}, {});
  EXPECT_EQ(names(pool), "a- b- ");
  EXPECT_EQ(pool.open("the-b", wait)->model.id, "b");
  EXPECT_EQ(pool.open("b", wait)->model.id, "b");
  EXPECT_EQ(names(pool), "a- b+ ");
  for (const auto* any : {"", "default", "gpt-4", "claude-3"})
    EXPECT_EQ(pool.open(any, wait)->model.id, "a") << any;
  EXPECT_EQ(loads, 2);
  EXPECT_EQ(pool.list()[0].context_length, 7);
  EXPECT_EQ(refusal_of([&] { pool.open("c", wait); }), "model: model_not_found");
}

TEST_F(PoolTest, LoadingHoldsUpNobodyElse) {
  ModelPool pool({fake("a"), fake("b")}, {}, {});
  const auto a = pool.open("a", wait);
  holds_back = true;
  int looks = 0;
  std::thread late([&] { pool.open("b", [&] { ++looks; }); });
  EXPECT_EQ(pool.open("a", wait)->model.id, "a");
  EXPECT_EQ(names(pool), "a+ b- ");
  std::this_thread::sleep_for(200ms);
  holds_back = false;
  late.join();
  EXPECT_GE(looks, 1) << "whoever waits looks after its client";
  EXPECT_EQ(names(pool), "a+ b+ ");
}

TEST_F(PoolTest, AClientThatLeavesWhileAModelIsLoadedLeavesNoTrace) {
  ModelPool pool({fake("a")}, {}, {});
  holds_back = true;
  EXPECT_THROW(pool.open("a", [] { fail(ErrorCode::cancelled, "http", "gone"); }), Error);
  holds_back = false;
  EXPECT_EQ(pool.open("a", wait)->model.id, "a");
}

TEST_F(PoolTest, AModelThatCannotBeLoadedIsAnErrorOfItsRequestsAndTriedAgain) {
  breaks = "b";
  ModelPool pool({fake("a"), fake("b")}, {}, {});
  EXPECT_EQ(refusal_of([&] { pool.open("b", wait); }), "model: model_load_failed");
  EXPECT_EQ(pool.open("a", wait)->model.id, "a");
  breaks = "";
  EXPECT_EQ(pool.open("b", wait)->model.id, "b");
}

TEST_F(PoolTest, RoomIsMadeByTheIdleModelThatWasUsedLongestAgo) {
  ModelPool pool({fake("a", 2), fake("b", 2), fake("c", 2), fake("d", 9)},
                 {.memory_bytes = 5, .idle_seconds = 0}, {});
  pool.open("a", wait);
  pool.open("b", wait);
  pool.open("a", wait);
  pool.open("c", wait);
  EXPECT_EQ(names(pool), "a+ b- c+ d- ");
  EXPECT_EQ(most_loaded, 2);
  EXPECT_EQ(refusal_of([&] { pool.open("d", wait); }), "model: model_does_not_fit");
}

TEST_F(PoolTest, AModelInUseLeavesWhenItIsGivenBackAndIsHandedOutNoMore) {
  ModelPool pool({fake("a"), fake("b")}, {.memory_bytes = 1, .idle_seconds = 0}, {});
  auto a = pool.open("a", wait);
  std::atomic<int> served = 0;
  std::thread second([&] {
    EXPECT_EQ(pool.open("b", wait)->model.id, "b");
    ++served;
  });
  ASSERT_TRUE(soon([&] { return names(pool) == "a- b- "; })) << "a is leaving";
  std::thread third([&] {
    EXPECT_EQ(pool.open("a", wait)->model.id, "a");
    ++served;
  });
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(served, 0) << "the third waits behind the second: nobody starves";
  EXPECT_EQ(a->model.id, "a");
  a.reset();
  second.join();
  third.join();
  EXPECT_EQ(most_loaded, 1);
}

TEST_F(PoolTest, AnIdleModelIsUnloadedAndOneInUseIsNot) {
  ModelPool pool({fake("a"), fake("b")}, {.memory_bytes = {}, .idle_seconds = 0.05}, {});
  const auto held = pool.open("a", wait);
  pool.open("b", wait);
  EXPECT_TRUE(soon([&] { return names(pool) == "a+ b- "; })) << names(pool);
  std::this_thread::sleep_for(300ms);
  EXPECT_EQ(names(pool), "a+ b- ");
}

TEST_F(PoolTest, UnloadingWaitsForUsers) {
  ModelPool pool({fake("a")}, {}, {});
  EXPECT_FALSE(pool.unload("a"));
  auto held = pool.open("a", wait);
  EXPECT_TRUE(pool.unload("a"));
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(loaded, 1);
  held.reset();
  EXPECT_TRUE(soon([&] { return loaded == 0; }));
  EXPECT_THROW(pool.unload("x"), RequestError);
}

TEST_F(PoolTest, TwoModelsOfOneNameAreRefused) {
  EXPECT_THROW(ModelPool({fake("a"), fake("a")}, {}, {}), Error);
}

TEST_F(PoolTest, ManyClientsOfManyModelsInLittleRoom) {
  {
    ModelPool pool({fake("a"), fake("b"), fake("c"), fake("d")}, {.memory_bytes = 2, .idle_seconds = 0}, {});
    std::vector<std::thread> clients;
    for (int c = 0; c < 8; ++c)
      clients.emplace_back([&pool, this, c] {
        for (int i = 0; i < 40; ++i) {
          const std::string id(1, static_cast<char>('a' + (c + i * (c + 1)) % 4));
          EXPECT_EQ(pool.open(id, wait)->model.id, id);
        }
      });
    for (auto& client : clients) client.join();
    EXPECT_LE(most_loaded, 2);
  }
  EXPECT_EQ(loaded, 0);
}

}  // namespace
}  // namespace godwit::serve
