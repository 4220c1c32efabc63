#include "models/decode_plan.h"

#include <memory>
#include <utility>
#include <vector>

#include "kernels/select.h"
#include "models/catalogue.h"
#include "models/tiny_checkpoint.h"
#include "ops/native_layers.h"

namespace godwit::models {
namespace {

enum class Flaw { none, node_of_mlx, by_count, other_source, aside };

// An embedding and a norm as the trunk, a norm as the head.
class SmallGraph final : public Model {
 public:
  explicit SmallGraph(Flaw flaw) : flaw_(flaw) {
    const kernels::PackedShape shape{kernels::packed_dense(kernels::ScaleType::bf16), 16, 32};
    const std::vector<std::byte> rows(16 * 32 * 2);
    matrix_ = std::make_shared<ops::PackedMatrix>(shape, rows, runtime.pool);
    norm_ = std::make_shared<ops::NormPlan>(ops::NormPlan{std::vector<float>(32, 1.0f), 1e-5f});
  }

  cache::StateNeeds state_needs() const override { return {}; }
  mx::array hidden(const mx::array& tokens, cache::Step& step) const override {
    const mx::array x = ops::native_norm(ops::native_embedding(tokens, matrix_, 1.0f), norm_);
    if (flaw_ == Flaw::node_of_mlx) return mx::multiply(x, x);
    if (flaw_ == Flaw::by_count && step.token_count() > 1) return ops::native_norm(x, norm_);
    return x;
  }
  mx::array logits(const mx::array& hidden) const override {
    if (flaw_ == Flaw::other_source) return ops::native_embedding(mx::array({1}), matrix_, 1.0f);
    return ops::native_norm(flaw_ == Flaw::aside ? hidden.inputs()[0] : hidden, norm_);
  }

  mutable ops::NativeRuntime runtime{kernels::Level::scalar, 1};

 private:
  Flaw flaw_;
  std::shared_ptr<const ops::PackedMatrix> matrix_;
  std::shared_ptr<const ops::NormPlan> norm_;
};

std::unique_ptr<const DecodePlan> plan_with(Flaw flaw, std::string_view chosen_by = "") {
  const SmallGraph graph(flaw);
  const cache::StateStore store({}, {}, NumericMode::native, &graph.runtime);
  return record_plan(graph, store, chosen_by);
}

TEST(RecordPlan, ListsTheNodesAndNamesWhatChoseThem) {
  const auto plan = plan_with(Flaw::none, "config a\n");
  EXPECT_EQ(plan->steps.nodes(ops::StepOutput::logits).size(), 3u);
  EXPECT_EQ(plan->steps.nodes(ops::StepOutput::hidden).size(), 2u);
  EXPECT_TRUE(plan->steps.nodes(ops::StepOutput::state).empty());  // no layer remembers anything
  EXPECT_EQ(plan->key.digits.size(), 64u);
  EXPECT_EQ(plan->key, plan_with(Flaw::none, "config a\n")->key);
  EXPECT_NE(plan->key, plan_with(Flaw::none, "config b\n")->key);
}

TEST(RecordPlan, AGraphThatNoListCanStandForSaysWhy) {
  const auto refused = [](ErrorCode code, Flaw flaw) { return message_of(code, [&] { plan_with(flaw); }); };
  EXPECT_TRUE(names(refused(ErrorCode::internal, Flaw::node_of_mlx), {"not ours", "Multiply"}));
  EXPECT_TRUE(names(refused(ErrorCode::unsupported, Flaw::by_count), {"number of its tokens"}));
  EXPECT_TRUE(names(refused(ErrorCode::unsupported, Flaw::other_source), {"begin with its tokens"}));
  EXPECT_TRUE(names(refused(ErrorCode::unsupported, Flaw::aside), {"on the way to its logits"}));
}

// Nothing of these opens a tensor file.
TEST(RequiredPlan, IsRefusedBeforeTheWeightsWhereNativeArithmeticIsNotToRun) {
  TinyCheckpoint checkpoint;
  checkpoint.tensors.clear();
  checkpoint.write("model.safetensors", "spoiled");
  EXPECT_TRUE(names(message_of(ErrorCode::invalid_argument,
                               [&] {
                                 checkpoint.open([](ModelOptions& o) {
                                   o.mode = NumericMode::reference;
                                   o.plan = PlanUse::required;
                                 });
                               }),
                    {"a plan is required", "reference"}));
  std::vector<Family> families = Registry::builtin().families();
  for (Family& family : families)
    if (family.id == "llama") family.native_figures = {};
  const auto catalogue = std::make_shared<const Catalogue>(Catalogue::of(Registry(families)));
  const auto open = [&](PlanUse plan) {
    checkpoint.open([&](ModelOptions& o) {
      o.mode.reset();
      o.catalogue = catalogue;
      o.plan = plan;
    });
  };
  EXPECT_TRUE(names(message_of(ErrorCode::unsupported, [&] { open(PlanUse::required); }),
                    {"a plan is required", "config", "the profile llama promises nothing"}));
  message_of(ErrorCode::corrupt_file, [&] { open(PlanUse::automatic); });  // the bait is one
}

TEST(RequiredPlan, NamesTheTensorThatKeepsNativeArithmeticFromRunning) {
  TinyCheckpoint checkpoint;
  checkpoint.set_head_dim(16);
  for (const std::optional<NumericMode> mode : {std::optional<NumericMode>(), std::optional(NumericMode::native)}) {
    const std::string message = message_of(ErrorCode::unsupported, [&] {
      checkpoint.open([&](ModelOptions& o) {
        o.mode = mode;
        o.plan = PlanUse::required;
      });
    });
    EXPECT_TRUE(names(message, {"layers.0.self_attn.q_proj.weight", "F32"}));
    EXPECT_EQ(bool(names(message, {"a plan is required", "native arithmetic cannot serve"})), !mode.has_value());
  }
  const auto model = checkpoint.open([](ModelOptions& o) { o.mode.reset(); });
  EXPECT_EQ(model->plan, nullptr);
  EXPECT_EQ(model->specialization(), Specialization::generic);
}

TEST(SpecializationOfAProfile, IsGeneratedInNativeArithmetic) {
  const Catalogue catalogue = Catalogue::builtin();
  for (const auto& profile : catalogue.profiles.profiles()) {
    EXPECT_EQ(specialization_of(*profile, NumericMode::native), Specialization::generated);
    EXPECT_EQ(specialization_of(*profile, NumericMode::reference), profile->execution.specialization);
  }
}

}  // namespace
}  // namespace godwit::models
