// Rows of a model with recurrent layers: forks, rounds that are taken back and the prompt cache answer with
// the bits of mlx-lm's plain run (families/qwen3_5.py).
#include <gtest/gtest.h>

#include <filesystem>

#include "base/mx_ops.h"
#include "decode/engine.h"
#include "oracle/golden_case.h"
#include "oracle/golden_run.h"

namespace godwit::oracle {
namespace {

constexpr const char* kCases[] = {"qwen3_5-f32-dense", "qwen3_5-bf16-q4"};

// The plan "steps": a prompt, then one token at a time.
struct Steps {
  std::vector<int> tokens;
  int prompt;
  mx::array logits;
};
Steps steps_of(const GoldenCase& golden) {
  for (const Plan& plan : golden.plans)
    if (plan.name == "steps") return {golden.tokens, plan.spans[0], plan.logits};
  throw std::runtime_error("no plan of steps");
}

mx::array rows(const mx::array& logits, int begin, int end) {
  mx::array part = mx::contiguous(mx::slice(logits, {begin, 0}, {end, logits.shape(1)}));
  part.eval();
  return part;
}

// Tokens [begin, end) one at a time.
mx::array feed(const models::ModelBundle& model, cache::Row& row, const Steps& steps, int begin, int end) {
  std::vector<mx::array> parts;
  for (int i = begin; i < end; ++i)
    parts.push_back(forward(model, row, std::span(steps.tokens).subspan(static_cast<std::size_t>(i), 1)));
  mx::array all = mx::contiguous(mx::concatenate(parts, 0));
  all.eval();
  return all;
}

std::span<const int> prompt_of(const Steps& steps) {
  return std::span(steps.tokens).first(static_cast<std::size_t>(steps.prompt));
}

class RecurrentRows : public testing::TestWithParam<const char*> {
 protected:
  const GoldenCase golden = read_case(std::filesystem::path(GODWIT_GOLDEN_FOLDER) / GetParam());
  const std::unique_ptr<models::ModelBundle> model = open_reference(golden.model);
  const Steps steps = steps_of(golden);
};

TEST_P(RecurrentRows, AForkAndItsOriginGoOnWithTheSameBits) {
  cache::Row row = model->store->create();
  forward(*model, row, prompt_of(steps));
  cache::Row fork = row.fork(row.position());
  const std::vector<int> others = {3, 1, 4, 1, 5};
  forward(*model, fork, others);  // what one computes is nothing to the other
  cache::Row again = row.fork(row.position());
  const mx::array wanted = rows(steps.logits, steps.prompt, steps.prompt + 6);
  EXPECT_TRUE(same_bits(feed(*model, row, steps, steps.prompt, steps.prompt + 6), wanted));
  EXPECT_TRUE(same_bits(feed(*model, again, steps, steps.prompt, steps.prompt + 6), wanted));
}

TEST_P(RecurrentRows, ARoundThatIsTakenBackLeavesTheBitsOfWhatItKept) {
  for (const int kept : {0, 2, 4}) {
    cache::Row row = model->store->create();
    forward(*model, row, prompt_of(steps));
    cache::Round round = row.begin();
    std::vector<int> draft(steps.tokens.begin() + steps.prompt, steps.tokens.begin() + steps.prompt + kept);
    draft.insert(draft.end(), {7, 7, 7});  // refused
    for (const int token : draft) forward(*model, row, std::span(&token, 1));
    round.rollback(kept);
    ASSERT_EQ(row.position(), steps.prompt + kept);
    const int begin = steps.prompt + kept, end = steps.prompt + 8;
    EXPECT_TRUE(same_bits(feed(*model, row, steps, begin, end), rows(steps.logits, begin, end))) << kept;
  }
}

TEST_P(RecurrentRows, ThePromptCacheFindsAPromptAgainAndAnswersTheSame) {
  models::ModelOptions options;
  options.path = golden.model;
  options.id = "tiny";
  options.mode = NumericMode::reference;
  decode::PromptCacheOptions cache;
  cache.use = decode::PromptCacheOptions::Use::on;
  cache.memory_bytes = std::size_t{1} << 28;
  decode::Engine engine(options, Log(), cache);
  for (const bool is_known : {false, true}) {
    decode::GenerationRequest request;
    request.prompt = golden.greedy_prompt;
    request.max_tokens = static_cast<int>(golden.greedy_tokens.size());
    request.sampling.temperature = 0;
    request.ignore_eos = true;
    decode::Job job = engine.submit(std::move(request));
    std::vector<int> tokens;
    while (const std::optional<decode::TokenEvent> event = job.next())
      if (event->id >= 0) tokens.push_back(event->id);
    EXPECT_EQ(tokens, golden.greedy_tokens);
    EXPECT_EQ(job.timings().cached_tokens > 0, is_known);
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, RecurrentRows, testing::ValuesIn(kCases), [](const auto& instance) {
  std::string name = instance.param;
  for (char& c : name)
    if (c == '-') c = '_';
  return name;
});

}  // namespace
}  // namespace godwit::oracle
