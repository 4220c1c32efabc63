// Native nodes under MLX's evaluator and transforms: the bits of the executor, a composed form that computes the same,
// and its gradients.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>

#include "base/error.h"
#include "base/mx_ops.h"
#include "ops/composed_branches.h"
#include "ops/executor.h"
#include "ops/mixed_graph.h"
#include "ops/native_test_plans.h"

namespace godwit::ops {
namespace {

using namespace native_test;

mx::array random_rows(unsigned seed, int columns = kHidden, float spread = 1) {
  std::mt19937 random(kSeed + seed);
  return mx::array(normals(random, kTokens * columns, spread).begin(), {kTokens, columns});
}

std::vector<float> values_of(const mx::array& x) {
  mx::array own = mx::contiguous(mx::astype(x, mx::float32));
  own.eval();
  return {own.data<float>(), own.data<float>() + own.size()};
}

const NativePrimitive& native_of(const mx::array& y) { return dynamic_cast<const NativePrimitive&>(y.primitive()); }

mx::array composed_of(const NodeCase& node, const mx::array& x, const StepLayers& layers) {
  Constants constants;
  return native_of(node.node(random_rows(0))).composed(x, constants, layers);
}

double norm_of(const std::vector<float>& x) {
  return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0));
}

template <typename Fn>
void for_each_node(Fn&& fn) {
  for (const bool dense : {true, false})
    for (const NodeCase& node : Plans(dense).all()) {
      SCOPED_TRACE(node.name + (dense ? ", bf16" : ", q8_0"));
      fn(node);
    }
}

TEST(NativeGradients, TheEvaluatorHasTheBitsOfTheExecutor) {
  for_each_node([](const NodeCase& node) {
    for (const auto form : {kernels::ActivationForm::int8, kernels::ActivationForm::f32}) {
      NativeRuntime runtime(kernels::best_level(), 2, form);
      StepState state;
      mx::array x = random_rows(1);
      x.eval();
      Executor executor(runtime);
      const auto run = executor.run(node.node(x), state.layers(node.window));
      const std::vector<float> wanted(run.begin(), run.end());
      // Behind a node of MLX's, in an order that is not that of the rows.
      const mx::array y = node.node(mx::transpose(mx::transpose(x) * mx::array(1.0f)));
      bind_runtime(y + mx::array(0.0f), runtime, state.layers(node.window));
      EXPECT_EQ(values_of(y), wanted);
    }
  });
}

// A chain makes eleven sums in a row or fewer, of at most 256 terms, each with an error of 2^-24; the stream beside a
// branch only shrinks their share.
TEST(NativeGradients, TheComposedFormComputesTheSameButForRounding) {
  for_each_node([](const NodeCase& node) {
    NativeRuntime runtime(kernels::best_level(), 1, kernels::ActivationForm::f32);
    StepState state;
    const mx::array x = random_rows(2), y = node.node(x);
    const std::vector<float> composed = values_of(composed_of(node, x, state.layers(node.window)));
    bind_runtime(y, runtime, state.layers(node.window));
    const std::vector<float> got = values_of(y), difference = values_of(y - mx::array(composed.begin(), y.shape()));
    EXPECT_LT(norm_of(difference), 11 * 256 * 0x1p-24 * norm_of(composed));
    EXPECT_GT(norm_of(difference), 0) << "equal bits would mean that one stood in for the other";
  });
}

TEST(NativeGradients, AreThoseOfTheComposedForm) {
  for_each_node([](const NodeCase& node) {
    StepState state;
    NativeRuntime runtime(kernels::best_level(), 1);
    const StepLayers layers = state.layers(node.window);
    const mx::array x = random_rows(3), weights = random_rows(4, node.node(x).shape(1));
    const auto native = [&](const mx::array& at) {
      const mx::array y = node.node(at);
      bind_runtime(y, runtime, layers);
      return y;
    };
    const auto composed = [&](const mx::array& at) { return composed_of(node, at, layers); };
    // With a node of MLX's in front, so that the rule is a link of a chain.
    const auto gradient = [&](auto&& forward) {
      return values_of(
          mx::grad([&](const mx::array& at) { return mx::sum(forward(at * mx::array(0.5f)) * weights); })(x));
    };
    EXPECT_EQ(gradient(native), gradient(composed));
    EXPECT_GT(norm_of(gradient(native)), 0);

    const mx::array tangent = random_rows(5);
    const auto pushed = [&](const std::function<mx::array(const mx::array&)>& forward) {
      return values_of(mx::jvp(forward, x, tangent).second);
    };
    EXPECT_EQ(pushed(native), pushed(composed));
  });
}

TEST(NativeGradients, OfDenseParametersAreThoseOfTheComposedForm) {
  for_each_node([](const NodeCase& node) {
    StepState state;
    NativeRuntime runtime(kernels::best_level(), 1);
    const StepLayers layers = state.layers(node.window);
    const mx::array x = random_rows(6), y = node.node(x), weights = random_rows(7, y.shape(1));
    bind_runtime(y, runtime, layers);
    Constants own;
    native_of(y).composed(x, own, layers);
    const auto gradients = parameter_gradients(y, weights);
    ASSERT_EQ(gradients.size(), own.parameters().size());
    for (const auto& [name, value] : own.parameters()) {
      SCOPED_TRACE(name);
      const auto loss = [&, name = name](const mx::array& replaced) {
        Constants constants({{name, replaced}});
        return mx::sum(native_of(y).composed(x, constants, layers) * weights);
      };
      const std::vector<float> got = values_of(gradients.at(name));
      EXPECT_EQ(got, values_of(mx::grad(loss)(value)));
      EXPECT_TRUE(norm_of(got) > 0 || name.starts_with("experts.")) << "and not every expert was chosen";
    }
  });
}

// A slope by central differences over `step` and over its half, freed of the error of the second order.
struct Slope {
  double value, truncation;  // truncation: what the next order leaves, fifteen times over
};

template <typename Loss>
Slope slope(const mx::array& x, const mx::array& direction, float step, Loss&& loss) {
  const auto central = [&](float h) {
    const mx::array moved = direction * mx::array(h);
    return (loss(x + moved) - loss(x - moved)) / (2 * double{h});
  };
  const double whole = central(step), half = central(step / 2), quarter = central(step / 4);
  const double coarse = (4 * half - whole) / 3, fine = (4 * quarter - half) / 3;
  return {fine, std::abs(fine - coarse)};
}

double dot(const std::vector<float>& a, const std::vector<float>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

// `forward` gives bound nodes over x. A value's rounding: `sums` sums in a row, each off by 2^-24 of what it adds in
// the mean; of two values, five thirds of them over the quarter of the step. A rule that is wrong anywhere moves the
// slope by several hundredths of it.
void expect_slope(const std::function<mx::array(const mx::array& x)>& forward, int sums) {
  constexpr float kStep = 0x1p-6f;  // so short that no row chooses other experts
  const mx::array x = random_rows(8), direction = random_rows(9), weights = random_rows(10, forward(x).shape(1));
  const std::vector<float> factors = values_of(weights);
  std::vector<float> y;
  const Slope measured = slope(x, direction, kStep, [&](const mx::array& at) {
    y = values_of(forward(at));
    return dot(y, factors);
  });
  const mx::array gradient = mx::grad([&](const mx::array& at) { return mx::sum(forward(at) * weights); })(x);
  const double bound = 5.0 / 3 * sums * 0x1p-24 * norm_of(factors) * norm_of(y) / (kStep / 4) + measured.truncation;
  EXPECT_NEAR(dot(values_of(gradient), values_of(direction)), measured.value, bound);
  EXPECT_GT(std::abs(measured.value), 20 * bound) << "too flat to tell a wrong rule";
}

TEST(NativeGradients, AreTheSlopeOfTheNativeForward) {
  for_each_node([](const NodeCase& node) {
    NativeRuntime runtime(kernels::best_level(), 2, kernels::ActivationForm::f32);
    StepState state;
    const auto forward = [&](const mx::array& x) {
      const mx::array y = node.node(x);
      bind_runtime(y, runtime, state.layers(node.window));
      return y;
    };
    expect_slope(forward, 11);
  });
}

std::string refusal_of(const std::function<void()>& work, ErrorCode code) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

TEST(NativeGradients, WhereNoneCanExistTheyAreRefusedByName) {
  for (const NodeCase& node : Plans(true).all()) {
    const auto gradient = [&](StepState& state) {
      const StepLayers layers = state.layers(node.window);
      NativeRuntime runtime(kernels::best_level(), 1);
      return refusal_of(
          [&] {
            mx::grad([&](const mx::array& x) {
              const mx::array y = node.node(x);
              bind_runtime(y, runtime, layers);
              return mx::sum(y);
            })(random_rows(14));
          },
          ErrorCode::unsupported);
    };
    StepState later({"f32", {}, {}}, 5), encoded({"f16", {kernels::KvForm::f16}, {kernels::KvForm::f16}});
    if (node.name.starts_with("attention")) {
      EXPECT_TRUE(has(gradient(later), "stored keys and values"));
      EXPECT_TRUE(has(gradient(encoded), "encoded"));
    }
    if (node.name.starts_with("delta")) {
      EXPECT_TRUE(has(gradient(later), "memory"));
    }
  }
}

struct Embedding {
  std::mt19937 random{kSeed};
  ThreadPool pool{1};
  std::shared_ptr<const PackedMatrix> matrix = random_matrix(random, pool, true, 12, kHidden);
  mx::array operator()(const std::vector<int>& tokens) const {
    return native_embedding(mx::array(tokens.begin(), {static_cast<int>(tokens.size())}), matrix, 2.0f);
  }
};

TEST(NativeGradients, AnEmbeddingHasOnesOfItsMatrixAndNoneOfTokens) {
  const Embedding embedding;
  NativeRuntime runtime(kernels::best_level(), 1);
  const mx::array y = embedding({3, 3, 11});
  bind_runtime(y, runtime);
  Constants constants;
  const std::vector<float> composed = values_of(native_of(y).composed(y.inputs()[0], constants, {}));
  EXPECT_EQ(values_of(y), composed);
  EXPECT_TRUE(has(refusal_of([&] { parameter_gradients(y, mx::ones(y.shape())); }, ErrorCode::invalid_argument),
                  "native node"));

  const mx::array gradient = parameter_gradients(embedding({3, 3, 11}), mx::ones({3, kHidden})).at("matrix");
  mx::array wanted = mx::zeros({12, kHidden});
  wanted = mx::slice_update(wanted, mx::full({1, kHidden}, 4.0f), mx::Shape{3, 0}, mx::Shape{4, kHidden});
  wanted = mx::slice_update(wanted, mx::full({1, kHidden}, 2.0f), mx::Shape{11, 0}, mx::Shape{12, kHidden});
  EXPECT_EQ(values_of(gradient), values_of(wanted));

  const mx::array one = embedding({1});  // holds the primitive
  auto& primitive = dynamic_cast<NativePrimitive&>(one.primitive());
  const std::string text = refusal_of(
      [&] {
        primitive.vjp({mx::array({1})}, {mx::ones({1, kHidden})}, {0}, {});
      },
      ErrorCode::unsupported);
  EXPECT_TRUE(has(text, "NativeEmbedding") && has(text, "tokens"));
}

// What a node throws reaches whoever evaluates, and the evaluator goes on.
TEST(NativeGradients, ErrorsOfNodesPassThroughTheEvaluator) {
  const Embedding embedding;
  NativeRuntime runtime(kernels::best_level(), 1);
  EXPECT_TRUE(has(refusal_of([&] { values_of(embedding({1})); }, ErrorCode::internal), "bound"));
  const mx::array outside = embedding({1, 12});
  bind_runtime(outside, runtime);
  EXPECT_TRUE(has(refusal_of([&] { values_of(outside); }, ErrorCode::invalid_argument), "token 12"));
  const mx::array inside = embedding({1, 11});
  bind_runtime(inside, runtime);
  EXPECT_GT(norm_of(values_of(inside)), 0);
}

}  // namespace
}  // namespace godwit::ops
