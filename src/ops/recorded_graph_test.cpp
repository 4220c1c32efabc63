#include "ops/recorded_graph.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"
#include "base/mx_ops.h"
#include "support/random_array.h"

namespace godwit::ops {
namespace {

using testing_support::random_array;

bool same_bits(const mx::array& a, const mx::array& b) {
  mx::array x = mx::contiguous(a), y = mx::contiguous(b);
  mx::eval(x, y);
  return x.shape() == y.shape() && x.dtype() == y.dtype() && std::memcmp(x.data<void>(), y.data<void>(), x.nbytes()) == 0;
}

mx::array no_call(std::size_t, const std::vector<mx::array>&) { throw std::runtime_error("no call"); }

mx::array blend(const mx::array& x, const mx::array& w) {
  const std::vector<mx::array> halves = mx::split(mx::matmul(x, mx::transpose(w)), 2, -1);
  return halves[0] * mx::sigmoid(halves[0]) + halves[1] / mx::array(3.0f);
}

TEST(RecordedGraph, GivesTheBitsOfTheCodeThatMadeItOverOtherArrays) {
  const mx::array x = placeholder({1, 8}, mx::float32), w = random_array({6, 8}, 1);
  const RecordedGraph graph({.inputs = {x, w}, .outputs = {blend(x, w)}});
  for (unsigned seed = 2; seed < 5; ++seed) {
    const mx::array given = random_array({1, 8}, seed), weight = random_array({6, 8}, seed + 100);
    EXPECT_TRUE(same_bits(graph.replay(std::vector{given, weight}, no_call)[0], blend(given, weight))) << seed;
  }
}

TEST(RecordedGraph, EqualNodesAreOneAndConstantsAreValues) {
  const mx::array x = placeholder({4}, mx::float32);
  const mx::array one(1.0f), lazy = mx::sin(random_array({4}, 1)) + one;  // nobody has evaluated it
  const mx::array sum = (x * lazy) + (x * lazy) * mx::array(1.0f);
  const RecordedGraph graph({.inputs = {x}, .outputs = {sum}});
  EXPECT_FALSE(lazy.has_primitive());  // evaluated by the recorder, for its owner too
  EXPECT_EQ(graph.nodes(), 3u);      // one product with lazy, one with the 1, the sum
  EXPECT_EQ(graph.constants(), 2u);  // lazy, and the 1 in its shape
  const mx::array given = random_array({4}, 2);
  EXPECT_TRUE(same_bits(graph.replay(std::vector{given}, no_call)[0], (given * lazy) + (given * lazy) * one));
}

TEST(RecordedGraph, LargeRecipesStayNodes) {
  const mx::array x = placeholder({1, 1 << 19}, mx::float32);
  const mx::array large = mx::sin(mx::ones({1, 1 << 19}));
  const RecordedGraph graph({.inputs = {x}, .outputs = {x + large}});
  EXPECT_TRUE(large.has_primitive());
  EXPECT_GE(graph.nodes(), 2u);
  const mx::array given = random_array({1, 1 << 19}, 1);
  EXPECT_TRUE(same_bits(graph.replay(std::vector{given}, no_call)[0], given + large));
}

mx::array attention(const mx::array& q, const mx::array& k) {
  return mx::softmax(mx::matmul(q, mx::swapaxes(k, -1, -2)), -1, true);
}

TEST(RecordedGraph, OnlyNodesThatSeeOtherShapesFollowThem) {
  const mx::array q = placeholder({2, 1, 8}, mx::float32), k = placeholder({2, 5, 8}, mx::float32);
  const auto over = [](const mx::array& query, const mx::array& keys) {
    const mx::array half = mx::split(query, 2, -1)[0];  // a node that could not follow
    return mx::matmul(attention(query, keys), keys) * mx::repeat(half, 2, -1);
  };
  const RecordedGraph graph(
      {.inputs = {q, k}, .later = {std::nullopt, mx::Shape{2, 6, 8}}, .outputs = {over(q, k)}});
  for (const int columns : {1, 5, 9, 700}) {
    const mx::array query = random_array({2, 1, 8}, 1), keys = random_array({2, columns, 8}, 2);
    EXPECT_TRUE(same_bits(graph.replay(std::vector{query, keys}, no_call)[0], over(query, keys))) << columns;
  }
}

TEST(RecordedGraph, AShapeThatANodeCannotFollowIsRefused) {
  const mx::array k = placeholder({2, 5, 8}, mx::float32);
  const auto record = [&](const mx::array& output) {
    return RecordedGraph({.inputs = {k}, .later = {mx::Shape{2, 6, 8}}, .outputs = {output}});
  };
  EXPECT_THROW(record(mx::slice(k, {0, 0, 0}, {2, 2, 8})), std::exception);
  EXPECT_THROW(record(mx::reshape(k, {2, 40})), std::exception);
  // Broadcast to a literal shape, beside an operand that moves on.
  EXPECT_THROW(record(k * mx::broadcast_to(mx::array(2.0f), {2, 5, 8})), Error);
}

TEST(RecordedGraph, CallsAreMadeInTheirOrder) {
  const mx::array x = placeholder({4}, mx::float32);
  const mx::array first = placeholder({4}, mx::float32), second = placeholder({4}, mx::float32);
  // The output names the second call before the first, and the second does not hang on the first.
  const RecordedGraph graph({.inputs = {x},
                             .outputs = {second - first},
                             .calls = {{{x + mx::array(1.0f)}, first}, {{x * mx::array(2.0f)}, second}}});
  EXPECT_EQ(graph.calls(), 2u);
  std::vector<std::size_t> order;
  const mx::array given = random_array({4}, 3);
  const auto caller = [&](std::size_t call, const std::vector<mx::array>& operands) {
    order.push_back(call);
    return mx::negative(operands.at(0));
  };
  const mx::array out = graph.replay(std::vector{given}, caller)[0];
  EXPECT_EQ(order, (std::vector<std::size_t>{0, 1}));
  EXPECT_TRUE(same_bits(out, mx::negative(given * mx::array(2.0f)) - mx::negative(given + mx::array(1.0f))));
}

TEST(RecordedGraph, LeavesWithoutAValueAndInputsOfOtherFormsAreErrors) {
  const mx::array x = placeholder({4}, mx::float32), stray = placeholder({4}, mx::float32);
  EXPECT_THROW(RecordedGraph({.inputs = {x}, .outputs = {x + stray}}), Error);
  const RecordedGraph graph({.inputs = {x}, .outputs = {x + x}});
  EXPECT_THROW(graph.replay(std::vector{random_array({5}, 1)}, no_call), Error);
  EXPECT_THROW(graph.replay(std::vector{mx::astype(random_array({4}, 1), mx::float16)}, no_call), Error);
  EXPECT_THROW(graph.replay(std::vector<mx::array>{}, no_call), Error);
}

}  // namespace
}  // namespace godwit::ops
