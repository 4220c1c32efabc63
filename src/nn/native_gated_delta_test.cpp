// The gated delta branch in native mode: the composed operations over the same values are its oracle.
#include "base/error.h"
#include "kernels/select.h"
#include "nn/gated_delta_test_support.h"
#include "nn/native_test_support.h"

namespace godwit::nn {
namespace {

using namespace delta_test;
using checkpoint::WeightScope;

constexpr int kTokens = 40;

struct Form {
  const char* name;
  Tensors tensors;
  GatedDeltaMixer::Options options;
};

std::vector<Form> forms() {
  GatedDeltaMixer::Options tiled = options();
  tiled.has_tiled_values = tiled.a_log_is_rate = true;
  std::vector<Form> all = {{"flat", flat_layer(), options()},
                           {"grouped", grouped_layer(), options()},
                           {"tiled", gguf_layer(), tiled}};
  for (Form& form : all) {
    form.tensors.emplace("before.weight", random_array({kHidden}, 20));
    form.tensors.emplace("after.weight", random_array({kHidden}, 21));
  }
  return all;
}

MixerBranch branch_of(const WeightScope& scope, const Form& form, bool has_after) {
  const NormOptions norm = {.dims = kHidden, .eps = 1e-6};
  BranchNorms norms = {.before = Norm(scope / "before", norm)};
  if (has_after) norms.after = Norm(scope / "after", norm);
  return {std::move(norms), std::make_unique<const GatedDeltaMixer>(scope, form.options)};
}

cache::LayerNeed need_of(const Form& form) {
  cache::LayerNeed need;
  need.content = cache::Content::recurrent;
  need.recurrent = form.options.need();
  return need;
}

// Of numbers of 16 bits nothing is rounded but f32 sums. A chain makes ten of them or fewer in a row, over at most 192
// terms with an error of 2^-24 for each, and the memory adds one of its own for each token; the stream beside the branch
// only shrinks their share.
constexpr double kBound = (10 * 192 + kTokens) * 0x1p-24;

TEST(NativeGatedDelta, IsTheComposedFormButForRounding) {
  const mx::array x = random_array({kTokens, kHidden}, 22);
  for (const Form& form : forms())
    for (const bool has_after : {false, true}) {
      SCOPED_TRACE(testing::Message() << form.name << has_after);
      ops::NativeRuntime runtime(kernels::best_level(), 2);
      const WeightScope native = scope_of(with_matrices_in(mx::bfloat16, form.tensors), &runtime.pool),
                        wide = scope_of(with_matrices_in(mx::float32, form.tensors));
      const auto got = through(branch_of(native, form, has_after), need_of(form), x, {9, 1, 30}, &runtime);
      const auto want = through(branch_of(wide, form, has_after), need_of(form), x, {kTokens});
      EXPECT_LT(relative_error(got, want), kBound);
      EXPECT_NE(got, want) << "equal bits would mean that one stood in for the other";
      if (has_after) native.store().audit();
    }
}

TEST(NativeGatedDelta, BitsDoNotDependOnSpansThreadsOrLevel) {
  const mx::array x = random_array({kTokens, kHidden}, 23);
  for (const Form& form : forms()) {
    SCOPED_TRACE(form.name);
    const auto run = [&](kernels::Level level, int threads, const std::vector<int>& spans) {
      ops::NativeRuntime runtime(level, threads);
      const WeightScope scope = scope_of(with_matrices_in(mx::bfloat16, form.tensors), &runtime.pool);
      return through(branch_of(scope, form, true), need_of(form), x, spans, &runtime);
    };
    const auto want = run(kernels::Level::scalar, 1, {kTokens});
    for (const kernels::Level level : kernels::runnable_levels())
      for (const int threads : {1, 3}) {
        EXPECT_EQ(run(level, threads, {2, 1, 1, 5, 31}), want) << kernels::level_name(level);
        EXPECT_EQ(run(level, threads, std::vector<int>(kTokens, 1)), want) << kernels::level_name(level);
      }
  }
}

// A file that lacks parts reaches the audit, which lists them.
TEST(NativeGatedDelta, MissingPartsAreLeftToTheAudit) {
  ThreadPool pool(1);
  const Form form = forms()[0];
  for (const auto& [name, tensor] : form.tensors) {
    Tensors tensors = with_matrices_in(mx::bfloat16, form.tensors);
    tensors.erase(name);
    const WeightScope scope = scope_of(tensors, &pool);
    EXPECT_NO_THROW(branch_of(scope, form, true)) << name;
    try {
      scope.store().audit();
      ADD_FAILURE() << name << " was not missed";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
    }
  }
}

TEST(NativeGatedDelta, MlxsOperationsDoNotRunOverPackedMatrices) {
  ThreadPool pool(1);
  const Form form = forms()[0];
  const GatedDeltaMixer mixer(scope_of(with_matrices_in(mx::bfloat16, form.tensors), &pool), form.options);
  const cache::StateStore states({need_of(form)}, {}, NumericMode::native);
  cache::Row row = states.create();
  const cache::RowSpan span{&row, 2};
  cache::Step step = states.plan({&span, 1});
  EXPECT_THROW(mixer(random_array({2, kHidden}, 24), step, step.layer(0)), Error);
}

}  // namespace
}  // namespace godwit::nn
