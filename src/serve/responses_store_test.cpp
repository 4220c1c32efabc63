#include "serve/responses_store.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

namespace godwit::serve {
namespace {

Json item(const std::string& id, const std::string& text = "x") {
  return {{"type", "message"}, {"id", id}, {"text", text}};
}

std::vector<std::string> ids_of(const Json& items) {
  std::vector<std::string> ids;
  for (const Json& one : items) ids.push_back(one["id"]);
  return ids;
}

// Answer `id` with one item in and one out, upon what `earlier` stands for.
void put(ResponseStore& store, const std::string& id, const std::string& earlier = "", std::int64_t now = 0,
         const std::string& text = "x") {
  std::vector<ResponseStore::Turn> turns;
  if (!earlier.empty()) turns = store.find(earlier, now)->turns;
  store.put(id, {{"id", id}}, turns, Json::array({item("in_" + id, text), item("out_" + id)}), 1, now);
}

TEST(ResponseStoreTest, AnAnswerKeepsWhatItWasBuiltUponWhenThatIsDeleted) {
  ResponseStore store;
  put(store, "a");
  put(store, "b", "a");
  EXPECT_TRUE(store.erase("a", 0));
  EXPECT_FALSE(store.erase("a", 0));
  EXPECT_EQ(store.find("a", 0), nullptr);
  put(store, "c", "b");
  EXPECT_TRUE(store.erase("b", 0));
  const auto record = store.find("c", 0);
  EXPECT_EQ(ids_of(record->all_items()),
            (std::vector<std::string>{"in_a", "out_a", "in_b", "out_b", "in_c", "out_c"}));
  EXPECT_EQ(ids_of(record->input_items()),
            (std::vector<std::string>{"in_a", "out_a", "in_b", "out_b", "in_c"}));
}

TEST(ResponseStoreTest, AnswersLeaveWithTheirTime) {
  ResponseStore store({.seconds = 10});
  put(store, "a", "", 100);
  EXPECT_NE(store.find("a", 110), nullptr);
  EXPECT_EQ(store.find("a", 111), nullptr);
  EXPECT_EQ(store.bytes(), 0u);
}

TEST(ResponseStoreTest, TheBytesStayBoundedAndWhatWasUsedLastStays) {
  ResponseStore store({.bytes = 4000});
  const std::string text(800, 't');
  for (const auto* id : {"a", "b", "c", "d"}) put(store, id, "", 0, text);
  EXPECT_NE(store.find("a", 0), nullptr);
  put(store, "e", "", 0, text);
  EXPECT_LE(store.bytes(), 4000u);
  EXPECT_NE(store.find("a", 0), nullptr) << "used after b";
  EXPECT_EQ(store.find("b", 0), nullptr);
  EXPECT_NE(store.find("e", 0), nullptr);
  put(store, "huge", "", 0, std::string(5000, 't'));
  EXPECT_EQ(store.find("huge", 0), nullptr);
  EXPECT_NE(store.find("e", 0), nullptr) << "what can never fit pushes nobody out";
}

TEST(ResponseStoreTest, ALongChainIsCountedOncePerTurnAndLeavesWithoutATrace) {
  ResponseStore store({.bytes = std::size_t{1} << 20});
  put(store, "r0");
  for (int i = 1; i < 500; ++i) {
    put(store, fmt::format("r{}", i), fmt::format("r{}", i - 1));
    ASSERT_LE(store.bytes(), std::size_t{1} << 20);
    ASSERT_NE(store.find(fmt::format("r{}", i), 0), nullptr);
  }
  EXPECT_EQ(ids_of(store.find("r499", 0)->all_items()).front(), "in_r0");
  store.find("r499", 1 << 20);
  EXPECT_EQ(store.bytes(), 0u);
}

TEST(ResponseStoreTest, ItemsAreFoundByTheirIds) {
  ResponseStore store;
  put(store, "a");
  put(store, "b", "a");
  EXPECT_EQ(store.find_item("out_a", 0), item("out_a"));
  EXPECT_EQ(store.find_item("nope", 0), std::nullopt);
}

}  // namespace
}  // namespace godwit::serve
