// A plan has the bits of the graph that it was recorded from, whatever a row has been through, and what it served is
// counted.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>

#include "base/error.h"
#include "base/mx_ops.h"
#include "cache/prefix_cache.h"
#include "decode/engine.h"
#include "models/catalogue.h"
#include "one_answer/forward.h"
#include "one_answer/tiny_affine.h"
#include "one_answer/tiny_gguf.h"
#include "ops/kv_layer.h"

namespace godwit::one_answer {
namespace {

using kernels::ActivationForm;
using models::PlanUse;
using ops::StepOutput;

constexpr unsigned kSeed = 20261201;
constexpr int kStart = 77;  // in the middle of a block

void append(Logits& all, const Logits& some) { all.insert(all.end(), some.begin(), some.end()); }

Logits one_by_one(const models::ModelBundle& model, const cache::StateStore& store, cache::Row& row,
                  std::span<const int> tokens) {
  return feed(model, store, row, tokens, [] { return 1; });
}

// A prompt whose logits nobody asks for.
void store_only(const models::ModelBundle& model, const cache::StateStore& store, cache::Row& row,
                std::span<const int> tokens, std::mt19937& random) {
  while (!tokens.empty()) {
    const int count = std::min({static_cast<int>(tokens.size()), between(random, 1, 20), row.longest_span()});
    const cache::RowSpan span{&row, count};
    cache::Step step = store.plan({&span, 1});
    EXPECT_TRUE(model.forward(tokens.first(static_cast<std::size_t>(count)), step, StepOutput::state).empty());
    step.publish();
    tokens = tokens.subspan(static_cast<std::size_t>(count));
  }
}

// Everything that a row may go through, as all logits on the way: a prompt, single tokens past the window, a block's end
// and the point where the row turns to its codec, a fork, a round that is taken back, a hit of the prefix cache, a step
// of several rows.
Logits life_of(const models::ModelBundle& model, const cache::StateStore& store) {
  std::mt19937 random(kSeed);
  const std::vector<int> tokens = random_tokens(150, kSeed + 1), others = random_tokens(60, kSeed + 2);
  const std::span<const int> all(tokens), other(others);
  Logits logits;
  cache::Row row = store.create();
  store_only(model, store, row, all.first(33), random);
  append(logits, one_by_one(model, store, row, all.subspan(33, 72)));
  cache::PrefixCache prefixes(store, {.cap_bytes = std::size_t{64} << 20, .snapshot_bytes = 0, .identity = ""});
  prefixes.insert(row, all.first(105));

  cache::Row fork = row.fork(105);
  append(logits, one_by_one(model, store, fork, other.first(6)));
  cache::Round round = row.begin();
  append(logits, one_by_one(model, store, row, other.subspan(10, 5)));
  round.rollback(2);
  append(logits, one_by_one(model, store, row, all.subspan(105, 4)));
  std::optional<cache::Row> hit = prefixes.find(all.first(110));
  EXPECT_TRUE(hit.has_value());
  if (!hit) return logits;
  append(logits, one_by_one(model, store, *hit, all.subspan(static_cast<std::size_t>(hit->position()), 10)));

  const cache::RowSpan spans[] = {{&row, 1}, {&fork, 3}, {&*hit, 1}};
  append(logits, native_step(model, store, spans, other.subspan(20, 5)));
  append(logits, one_by_one(model, store, *hit, other.subspan(30, 3)));
  return logits;
}

class Plans : public testing::TestWithParam<std::tuple<std::string, ActivationForm>> {
 protected:
  Plans() {
    const auto& [kind, form] = GetParam();
    file_ = folder_ / (kind == "affine" ? "model" : "model.gguf");
    if (kind == "affine")
      write_affine_model(file_);
    else
      write_model(file_, kind == "sliding");
    planned_ = open_model(file_, NumericMode::native, form, PlanUse::required);
    plain_ = open_model(file_, NumericMode::native, form, PlanUse::off);
    std::cout << "seed " << kSeed << "\n";
  }

  Folder folder_;
  std::filesystem::path file_;
  std::unique_ptr<models::ModelBundle> planned_, plain_;
};

// Behind the last layer only what is asked for is computed.
TEST_P(Plans, ChosenTokensHaveTheBitsThatTheyHaveAmongAll) {
  const std::vector<int> tokens = random_tokens(15, kSeed);
  const std::vector<int> choices[] = {{4, 5, 14}, {0}, {14}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}};
  for (const auto* model : {planned_.get(), plain_.get()}) {
    std::vector<cache::Row> rows;
    for (int i = 0; i < 3; ++i) rows.push_back(model->store->create());
    const cache::RowSpan spans[] = {{&rows[0], 5}, {&rows[1], 1}, {&rows[2], 9}};
    const auto run = [&](StepOutput wanted, std::span<const int> chosen) {  // unpublished: the rows stay empty
      cache::Step step = model->store->plan(spans);
      const std::span<const float> values = model->forward(tokens, step, wanted, chosen);
      return Logits(values.begin(), values.end());
    };
    for (const StepOutput wanted : {StepOutput::logits, StepOutput::hidden}) {
      const Logits all = run(wanted, {});
      const std::size_t width = all.size() / tokens.size();
      for (const auto& chosen : choices) {
        const Logits got = run(wanted, chosen);
        ASSERT_EQ(got.size(), chosen.size() * width);
        for (std::size_t i = 0; i < chosen.size(); ++i)
          EXPECT_TRUE(same_bits(std::span(got).subspan(i * width, width),
                                std::span(all).subspan(static_cast<std::size_t>(chosen[i]) * width, width)))
              << chosen[i];
      }
    }
    for (const std::vector<int>& wrong : {std::vector<int>{3, 3}, {5, 2}, {15}})
      EXPECT_THROW(run(StepOutput::logits, wrong), Error);
  }
}

TEST_P(Plans, HaveTheBitsOfTheGraphWhateverTheRowHasBeenThrough) {
  std::vector<std::pair<const char*, int>> policies = {
      {"dense:f32", 0}, {"dense:bf16", 0}, {"affine:4:32", 0}, {"affine:8:64", kStart}};
  if (std::get<0>(GetParam()) != "sliding") {
    policies.emplace_back("turbo:4:3", 0);
    policies.emplace_back("turbo:8:4", kStart);
  }
  for (const auto& [kv, start] : policies) {
    SCOPED_TRACE(std::string(kv) + " start " + std::to_string(start));
    cache::KvPolicy policy = cache::parse_kv_policy(kv);
    policy.start = start;
    const std::int64_t before = planned_->executor->counts().planned;
    const auto store = planned_->make_store(policy), plain_store = plain_->make_store(policy);
    const Logits got = life_of(*planned_, *store), wanted = life_of(*plain_, *plain_store);
    ASSERT_GT(wanted.size(), 90u * kVocabulary);
    EXPECT_TRUE(same_bits(got, wanted));
    EXPECT_GT(planned_->executor->counts().planned, before + 90);
  }
  EXPECT_EQ(planned_->executor->counts().planned, planned_->executor->counts().steps);
  EXPECT_EQ(plain_->executor->counts().steps, planned_->executor->counts().steps);
  EXPECT_EQ(plain_->executor->counts().planned, 0);
}

TEST_P(Plans, GiveTheHiddenStatesOfTheGraph) {
  const std::vector<int> tokens = random_tokens(9, 5);
  const auto hidden = [&](const models::ModelBundle& model) {
    cache::Row row = model.store->create();
    const cache::RowSpan span{&row, 9};
    cache::Step step = model.store->plan({&span, 1});
    const auto values = model.forward(tokens, step, StepOutput::hidden);
    return Logits(values.begin(), values.end());
  };
  const Logits wanted = hidden(*plain_);
  EXPECT_EQ(wanted.size(), 9u * static_cast<std::size_t>(plain_->config.hidden));
  EXPECT_TRUE(same_bits(hidden(*planned_), wanted));
}

// The count is that of steps that ended, one for each forward, whoever asks for them.
TEST_P(Plans, CountEveryStepThatTheyServeAndNoOther) {
  cache::Row row = planned_->store->create();
  const std::int64_t before = planned_->executor->counts().planned;
  one_by_one(*planned_, *planned_->store, row, random_tokens(17, 3));
  EXPECT_EQ(planned_->executor->counts().planned, before + 17);
  const cache::RowSpan span{&row, 1};
  const std::vector<int> wrong = {kVocabulary};
  {
    cache::Step step = planned_->store->plan({&span, 1});
    EXPECT_THROW(planned_->forward(wrong, step, StepOutput::logits), Error);
  }
  EXPECT_EQ(planned_->executor->counts().planned, before + 17);
}

// A layer that throws in the middle of a step, when the ones before it have written already.
TEST_P(Plans, AStepThatThrowsInTheMiddleLeavesTheRowAsItWas) {
  const std::vector<int> tokens = random_tokens(80, 6);
  const std::span<const int> all(tokens);
  cache::Row plain = plain_->store->create();
  const Logits wanted = one_by_one(*plain_, *plain_->store, plain, all);
  cache::Row row = planned_->store->create();
  for (const std::size_t at : {0u, 1u, 50u, 63u, 64u, 79u}) {
    one_by_one(*planned_, *planned_->store, row, all.subspan(static_cast<std::size_t>(row.position()), at - static_cast<std::size_t>(row.position())));
    {
      const cache::RowSpan span{&row, 1};
      cache::Step step = planned_->store->plan({&span, 1});
      step.native_layers().kv[1].stored = true;
      EXPECT_THROW(planned_->forward(all.subspan(at, 1), step, StepOutput::logits), Error);
    }
    EXPECT_EQ(row.position(), static_cast<int>(at));
    EXPECT_TRUE(same_bits(one_by_one(*planned_, *planned_->store, row, all.subspan(at, 1)), rows_of(wanted, at, 1))) << at;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Plans,
                         testing::Combine(testing::Values("full", "sliding", "affine"),
                                          testing::Values(ActivationForm::int8, ActivationForm::f32)),
                         [](const auto& instance) {
                           return std::get<0>(instance.param) + "_" + std::string(models::name_of(std::get<1>(instance.param)));
                         });

decode::Timings timings_of(const std::filesystem::path& file, PlanUse plan, NumericMode mode, double temperature) {
  models::ModelOptions options;
  options.path = file;
  options.mode = mode;
  options.plan = plan;
  options.threads = 1;
  decode::Engine engine(options, Log());
  decode::GenerationRequest request;
  request.prompt = random_tokens(40, 4);
  request.max_tokens = 9;
  request.ignore_eos = true;
  request.sampling.temperature = temperature;
  request.sampling.seed = 1;
  decode::Job job = engine.submit(std::move(request));
  while (job.next()) continue;
  return job.timings();
}

// One step for the prompt but its last token, one for each token made.
TEST(PlanCounts, AreThoseOfAnAnswersSteps) {
  const Folder folder;
  write_model(folder / "model.gguf", /*slides=*/false);
  // One step for the prompt, which makes the first token, one for each other token.
  for (const double temperature : {0.0, 1.0}) {
    const auto served = timings_of(folder / "model.gguf", PlanUse::automatic, NumericMode::native, temperature);
    EXPECT_EQ(served.steps, 9);
    EXPECT_EQ(served.planned_steps, 9);
    const auto plain = timings_of(folder / "model.gguf", PlanUse::off, NumericMode::native, temperature);
    EXPECT_EQ(plain.steps, 9);
    EXPECT_EQ(plain.planned_steps, 0);
  }
  const auto reference = timings_of(folder / "model.gguf", PlanUse::automatic, NumericMode::reference, 0.0);
  EXPECT_EQ(reference.steps, 1 + 9);
  EXPECT_EQ(reference.planned_steps, 0);
}

TEST(PlanKeys, NameTheConfigTheFormatsAndTheActivations) {
  const Folder folder;
  write_model(folder / "full.gguf", /*slides=*/false);
  write_model(folder / "again.gguf", /*slides=*/false, /*seed=*/2);  // other weights of the same shapes
  write_model(folder / "sliding.gguf", /*slides=*/true);
  write_affine_model(folder / "affine");
  const auto key = [&](const char* name, ActivationForm form = ActivationForm::int8) {
    return open_model(folder / name, NumericMode::native, form)->plan->key;
  };
  EXPECT_EQ(key("full.gguf"), key("again.gguf"));
  EXPECT_NE(key("full.gguf"), key("full.gguf", ActivationForm::f32));
  EXPECT_NE(key("full.gguf"), key("sliding.gguf"));
  EXPECT_NE(key("full.gguf"), key("affine"));
}

TEST(PlanKeys, EqualRotationsAreFormedOnce) {
  const Folder folder;
  write_model(folder / "full.gguf", /*slides=*/false);
  write_model(folder / "sliding.gguf", /*slides=*/true);
  EXPECT_EQ(open_model(folder / "full.gguf", NumericMode::native)->plan->steps.ropes().size(), 1u);
  EXPECT_EQ(open_model(folder / "sliding.gguf", NumericMode::native)->plan->steps.ropes().size(), 2u);
}

// A span of several tokens never fits in front of such a start; the plan is recorded all the same.
TEST(PlanKeys, AModelWhoseRowsTurnAtTheirFirstTokenHasAPlan) {
  const Folder folder;
  write_model(folder / "model.gguf", /*slides=*/false);
  models::ModelOptions options;
  options.path = folder / "model.gguf";
  options.mode = NumericMode::native;
  options.plan = PlanUse::required;
  options.kv = cache::parse_kv_policy("affine:4:32");
  options.kv.start = 1;
  const auto model = models::ModelBundle::open(options, Log());
  EXPECT_EQ(model->specialization(), models::Specialization::generated);
  options.plan = PlanUse::off;
  const auto plain = models::ModelBundle::open(options, Log());
  EXPECT_EQ(plain->plan, nullptr);
  EXPECT_EQ(plain->specialization(), plain->profile.profile->execution.specialization);
  EXPECT_TRUE(same_bits(life_of(*model, *model->store), life_of(*plain, *plain->store)));
}

// A graph with a node of MLX's behind the trunk of a llama.
class Mixed final : public models::Model {
 public:
  explicit Mixed(std::unique_ptr<models::Model> llama) : llama_(std::move(llama)) {}
  cache::StateNeeds state_needs() const override { return llama_->state_needs(); }
  mx::array hidden(const mx::array& tokens, cache::Step& step) const override {
    return mx::negative(llama_->hidden(tokens, step));
  }
  mx::array logits(const mx::array& hidden) const override { return llama_->logits(hidden); }

 private:
  std::unique_ptr<models::Model> llama_;
};

std::unique_ptr<models::Model> make_mixed(const checkpoint::WeightScope& root, const checkpoint::Config& config) {
  const models::Registry builtin = models::Registry::builtin();
  return std::make_unique<Mixed>(std::ranges::find(builtin.families(), "llama", &models::Family::id)->make(root, config));
}

TEST(RequiredPlan, NamesTheNodeThatKeepsAGraphFromBeingRecorded) {
  const Folder folder;
  write_model(folder / "model.gguf", /*slides=*/false);
  std::vector<models::Family> families = models::Registry::builtin().families();
  std::ranges::find(families, "llama", &models::Family::id)->make = make_mixed;
  models::ModelOptions options;
  options.path = folder / "model.gguf";
  options.mode.reset();
  options.catalogue = std::make_shared<const models::Catalogue>(models::Catalogue::of(models::Registry(families)));
  const auto model = models::ModelBundle::open(options, Log());
  EXPECT_EQ(model->mode, NumericMode::native);
  EXPECT_EQ(model->plan, nullptr);
  EXPECT_NE(model->plan_problem.find("Negative"), std::string::npos) << model->plan_problem;
  EXPECT_EQ(model->specialization(), models::Specialization::generic);
  options.plan = PlanUse::required;
  try {
    models::ModelBundle::open(options, Log());
    ADD_FAILURE() << "opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    const std::string message = error.what();
    EXPECT_NE(message.find("a plan is required"), std::string::npos) << message;
    EXPECT_NE(message.find("Negative"), std::string::npos) << message;
    EXPECT_EQ(message.find("cannot serve"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace godwit::one_answer
