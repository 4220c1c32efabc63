#include "cache/prefix_tree.h"

#include <gtest/gtest.h>
#include <pthread.h>

namespace godwit::cache {
namespace {

// A prompt of a million tokens and more, on the smallest stack that some systems give a thread.
constexpr int kDeep = 20'000;

void* grow_walk_and_end(void* counted) {
  PrefixTree tree(ColdKey{}, 1);
  const std::vector<int> tokens(kPositions, 5);
  PrefixNode* node = &tree.root();
  for (int i = 0; i < kDeep; ++i) node = &tree.put(*node, tokens);
  tree.for_nodes([&](PrefixNode&) { ++*static_cast<int*>(counted); });
  return nullptr;
}

TEST(PrefixTree, NoDepthIsTooMuchForTheStack) {
  int counted = 0;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, std::size_t{256} << 10), 0);
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &attributes, grow_walk_and_end, &counted), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  EXPECT_EQ(counted, kDeep);
}

TEST(PrefixTree, WalksEveryNodeOfEveryBranch) {
  PrefixTree tree(ColdKey{}, 1);
  std::vector<int> tokens(kPositions, 1);
  PrefixNode& first = tree.put(tree.root(), tokens);
  for (int i = 0; i < 3; ++i) {
    tokens[0] = i;
    PrefixNode& second = tree.put(first, tokens);
    tree.put(second, std::vector<int>{9});
    tree.put(second, std::vector<int>{8, 7});
  }
  int nodes = 0;
  tree.for_nodes([&](const PrefixNode& node) { nodes += !node.is_root(); });
  EXPECT_EQ(nodes, 1 + 3 * 3);
}

}  // namespace
}  // namespace godwit::cache
