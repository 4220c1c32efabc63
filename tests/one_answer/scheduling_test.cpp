// Continuous batching changes no bit: tokens and log-probabilities of a request are those that it gets alone, whoever is
// served beside it, whenever it joins, in whatever pieces its prompt is computed, and however often it gives way.
#include <gtest/gtest.h>

#include <iostream>
#include <memory>
#include <thread>

#include "base/error.h"
#include "cache/prefix_cache.h"
#include "decode/engine.h"
#include "decode/step_batch.h"
#include "one_answer/forward.h"
#include "one_answer/tiny_gguf.h"
#include "one_answer/tiny_hybrid.h"

namespace godwit::one_answer {
namespace {

using decode::EngineOptions;
using decode::GenerationRequest;
using decode::PromptCacheOptions;

constexpr unsigned kSeed = 20261202;

struct Answer {
  std::vector<int> ids;
  std::vector<double> logprobs;
  decode::FinishReason finish = decode::FinishReason::none;

  bool operator==(const Answer&) const = default;
};

std::vector<Answer> collect(decode::Job& job, int choices = 1) {
  std::vector<Answer> answers(static_cast<std::size_t>(choices));
  while (const std::optional<decode::TokenEvent> event = job.next()) {
    Answer& answer = answers.at(static_cast<std::size_t>(event->choice));
    EXPECT_EQ(answer.finish, decode::FinishReason::none) << "an event behind the last one";
    answer.finish = event->finish;
    if (event->id < 0) continue;
    answer.ids.push_back(event->id);
    for (const decode::TokenLogprob& top : event->top_logprobs) answer.logprobs.push_back(top.logprob);
  }
  return answers;
}

Answer ask(decode::Engine& engine, const GenerationRequest& request) {
  decode::Job job = engine.submit(request);
  return collect(job).front();
}

models::ModelOptions options_for(const std::filesystem::path& file, const std::string& kv = "dense", int start = 0,
                                 NumericMode mode = NumericMode::native) {
  models::ModelOptions options;
  options.path = file;
  options.id = file.filename().string();
  options.mode = mode;
  options.threads = 2;
  options.kv = cache::parse_kv_policy(kv);
  options.kv.start = start;
  return options;
}

PromptCacheOptions prompts(std::size_t bytes) {
  PromptCacheOptions options;
  options.use = bytes > 0 ? PromptCacheOptions::Use::on : PromptCacheOptions::Use::off;
  options.memory_bytes = bytes;
  return options;
}

// Prompts of unequal length, some with a common beginning and some equal; every way to choose a token.
std::vector<GenerationRequest> mixed_requests(std::size_t count, int longest) {
  std::mt19937 random(kSeed);
  const std::vector<int> common = random_tokens(static_cast<std::size_t>(longest), 1);
  std::vector<GenerationRequest> requests;
  for (std::size_t i = 0; i < count; ++i) {
    GenerationRequest request;
    request.prompt.assign(common.begin(), common.begin() + between(random, 0, longest));
    const std::vector<int> own = random_tokens(static_cast<std::size_t>(between(random, 1, 20)), kSeed + static_cast<unsigned>(i));
    request.prompt.insert(request.prompt.end(), own.begin(), own.end());
    if (i % 4 == 3) request.prompt = requests.back().prompt;
    request.max_tokens = between(random, 1, 24);
    request.ignore_eos = true;
    request.logprobs = i % 3 != 2;
    request.top_logprobs = request.logprobs ? 20 : 0;
    request.sampling.temperature = i % 2 == 0 ? 0 : 1;
    request.sampling.seed = i;
    if (i % 5 == 4) request.sampling.repetition_penalty = 1.3;
    requests.push_back(std::move(request));
  }
  return requests;
}

std::vector<Answer> answers_alone(const models::ModelOptions& model, const std::vector<GenerationRequest>& requests) {
  EngineOptions options;
  options.max_rows = 1;
  decode::Engine engine(model, Log(), options);
  std::vector<Answer> answers;
  for (const GenerationRequest& request : requests) answers.push_back(ask(engine, request));
  return answers;
}

// Everybody at once, from threads that come and go; some of the others leave in the middle.
void expect_same_together(decode::Engine& engine, const std::vector<GenerationRequest>& requests,
                          const std::vector<Answer>& wanted, unsigned seed) {
  std::vector<Answer> got(requests.size());
  std::vector<std::thread> clients;
  for (std::size_t client = 0; client < 4; ++client)
    clients.emplace_back([&, client] {
      std::mt19937 random(seed + static_cast<unsigned>(client));
      for (std::size_t i = client; i < requests.size(); i += 4) {
        GenerationRequest other = requests[static_cast<std::size_t>(between(random, 0, static_cast<int>(requests.size()) - 1))];
        decode::Job leaving = engine.submit(other), kept = engine.submit(requests[i]);
        for (int seen = between(random, 0, 3); seen > 0; --seen) leaving.next();
        leaving.cancel();
        got[i] = collect(kept).front();
      }
    });
  for (std::thread& client : clients) client.join();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(got[i].ids, wanted[i].ids) << i;
    EXPECT_EQ(got[i].logprobs, wanted[i].logprobs) << i;
  }
}

// No row is left: what is resident is the cache's.
void expect_no_leak(decode::Engine& engine) {
  std::size_t resident = 0;
  engine.run([&](const models::ModelBundle& bundle) { resident = bundle.store->resident_bytes(); });
  const auto prompts = engine.prompt_cache();
  if (prompts)
    EXPECT_LE(resident, prompts->bytes);
  else
    EXPECT_EQ(resident, 0u);
  const decode::EngineStats stats = engine.stats();
  EXPECT_EQ(stats.rows_running + stats.rows_paused + stats.rows_waiting, 0);
  EXPECT_LE(stats.requests, stats.finished + stats.cancelled + stats.failed);  // some are cancelled before they have a row
}

class Scheduling : public ::testing::Test {
 protected:
  Scheduling() {
    write_model(full_, false);
    write_model(sliding_, true);
    write_hybrid_model(hybrid_);
    std::cout << "seed " << kSeed << "\n";
  }

  Folder folder_;
  const std::filesystem::path full_ = folder_ / "full.gguf", sliding_ = folder_ / "sliding.gguf",
                              hybrid_ = folder_ / "hybrid.gguf";
};

TEST_F(Scheduling, CompanyChangesNoBit) {
  const std::tuple<std::filesystem::path, std::string, int> kCases[] = {
      {full_, "dense", 0}, {full_, "affine:4:64", 50}, {full_, "turbo:8:4", 0},
      {sliding_, "dense", 0}, {hybrid_, "dense", 0}, {hybrid_, "affine:8:32", 70}};
  const std::vector<GenerationRequest> requests = mixed_requests(16, 130);
  unsigned round = 0;
  for (const auto& [file, kv, start] : kCases) {
    SCOPED_TRACE(file.filename().string() + " " + kv);
    const models::ModelOptions model = options_for(file, kv, start);
    const std::vector<Answer> wanted = answers_alone(model, requests);
    for (const std::optional<int> piece : {std::optional<int>(), std::optional(1), std::optional(37)}) {
      EngineOptions options(prompts(round % 2 == 0 ? std::size_t{8} << 20 : 0));
      options.max_rows = 6;
      options.prefill_tokens = piece;
      decode::Engine engine(model, Log(), options);
      expect_same_together(engine, requests, wanted, kSeed + ++round);
      expect_no_leak(engine);
    }
  }
}

// A budget that a few rows fill while they grow.
TEST_F(Scheduling, RowsThatGiveWayGoOnWithTheSameBits) {
  std::vector<GenerationRequest> requests = mixed_requests(10, 60);
  for (GenerationRequest& request : requests) request.max_tokens = 200;
  for (const auto& file : {full_, sliding_, hybrid_}) {
    SCOPED_TRACE(file.filename().string());
    const models::ModelOptions model = options_for(file);
    const std::vector<Answer> wanted = answers_alone(model, requests);
    for (const std::size_t cached : {std::size_t{0}, std::size_t{1} << 19}) {
      EngineOptions options(prompts(cached));
      options.max_rows = 8;
      std::size_t one = 0;
      decode::Engine(model, Log()).run([&](const models::ModelBundle& bundle) { one = bundle.store->projected_bytes(320); });
      options.memory_bytes = 3 * one + 2 * cached;
      decode::Engine engine(model, Log(), options);
      std::vector<decode::Job> jobs;
      for (const GenerationRequest& request : requests) jobs.push_back(engine.submit(request));
      for (std::size_t i = 0; i < jobs.size(); ++i) EXPECT_EQ(collect(jobs[i]).front(), wanted[i]) << i;
      EXPECT_GT(engine.stats().preemptions, 0);
      expect_no_leak(engine);
    }
  }
}

TEST_F(Scheduling, MemoryStaysWithinItsBudget) {
  std::size_t one = 0;
  decode::Engine(options_for(full_), Log()).run([&](const models::ModelBundle& bundle) { one = bundle.store->projected_bytes(320); });
  EngineOptions options(prompts(one));
  options.max_rows = 8;
  options.memory_bytes = 4 * one;
  decode::Engine engine(options_for(full_), Log(), options);
  std::vector<GenerationRequest> requests = mixed_requests(12, 60);
  std::vector<decode::Job> jobs;
  for (GenerationRequest& request : requests) {
    request.max_tokens = 150;
    jobs.push_back(engine.submit(request));
  }
  for (decode::Job& job : jobs)
    while (job.next()) EXPECT_LE(engine.stats().resident_bytes, static_cast<std::int64_t>(*options.memory_bytes));
  EXPECT_GT(engine.stats().resident_bytes, 0);

  GenerationRequest large = requests[0];
  large.prompt = random_tokens(2000, 3);
  try {
    engine.submit(large);
    ADD_FAILURE() << "it cannot fit";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::context_over_budget) << error.what();
  }
  large.prompt.resize(100);
  large.max_tokens = -1;  // ends where the memory does
  EXPECT_EQ(ask(engine, large).finish, decode::FinishReason::length);
  expect_no_leak(engine);
}

TEST_F(Scheduling, ChoicesAreThoseOfSeparateRequestsAndShareTheirPrompt) {
  for (const auto& [file, mode] : {std::pair(full_, NumericMode::native), std::pair(sliding_, NumericMode::native),
                                   std::pair(hybrid_, NumericMode::native), std::pair(full_, NumericMode::reference)}) {
    SCOPED_TRACE(file.filename().string());
    const models::ModelOptions model = options_for(file, "dense", 0, mode);
    GenerationRequest request = mixed_requests(1, 1).front();
    request.prompt = random_tokens(300, 4);
    request.sampling.temperature = 1;
    request.max_tokens = 10;
    std::vector<GenerationRequest> apart(5, request);
    for (int i = 0; i < 5; ++i) apart[static_cast<std::size_t>(i)].choice = i;
    const std::vector<Answer> wanted = answers_alone(model, apart);
    EXPECT_NE(wanted[0], wanted[1]);
    decode::Engine engine(model, Log());
    request.choices = 5;
    decode::Job job = engine.submit(request);
    EXPECT_EQ(collect(job, 5), wanted);
    EXPECT_EQ(engine.stats().prompt_tokens, 299) << "the last token of the prompt is each row's own";
    EXPECT_EQ(job.timings().cached_tokens, 0);
    EXPECT_EQ(job.timings().completion_tokens, 50);
    if (mode == NumericMode::native) expect_no_leak(engine);
  }
}

TEST_F(Scheduling, RequestsOfOtherPoliciesHaveTheBitsOfAnEngineOfThatPolicy) {
  std::vector<GenerationRequest> requests = mixed_requests(12, 100);
  const std::vector<std::string> policies = {"dense", "affine:4:64", "turbo:8:4"};
  std::vector<Answer> wanted(requests.size());
  for (std::size_t p = 0; p < policies.size(); ++p) {
    const std::vector<Answer> all = answers_alone(options_for(full_, policies[p]), requests);
    for (std::size_t i = p; i < requests.size(); i += policies.size()) wanted[i] = all[i];
  }
  for (std::size_t i = 0; i < requests.size(); ++i)
    if (i % 3 > 0) requests[i].kv = cache::parse_kv_policy(policies[i % 3]);
  EngineOptions options(prompts(std::size_t{8} << 20));
  decode::Engine engine(options_for(full_), Log(), options);
  expect_same_together(engine, requests, wanted, kSeed);
  requests[0].kv = cache::parse_kv_policy("turbo:8:4");
  decode::Engine slides(options_for(sliding_), Log());
  EXPECT_THROW(slides.submit(requests[0]), Error);
}

TEST_F(Scheduling, ReferenceServesSeveralRowsWithTheBitsOfOne) {
  const models::ModelOptions model = options_for(full_, "dense", 0, NumericMode::reference);
  std::vector<GenerationRequest> requests = mixed_requests(6, 40);
  for (GenerationRequest& request : requests) request.max_tokens = 8;
  const std::vector<Answer> wanted = answers_alone(model, requests);
  EngineOptions options(prompts(std::size_t{8} << 20));
  options.max_rows = 4;
  decode::Engine engine(model, Log(), options);
  expect_same_together(engine, requests, wanted, kSeed);
}

// The forward of a step with a token that is none, beside rows that are well.
TEST_F(Scheduling, AForwardThatFailsLeavesItsRowsAsTheyWere) {
  for (const auto& file : {full_, sliding_, hybrid_}) {
    SCOPED_TRACE(file.filename().string());
    const auto model = open_model(file, NumericMode::native);
    decode::StepBatch batch(*model);
    decode::RowRunner good(*model), bad(*model), alone(*model);
    const std::vector<int> tokens = random_tokens(70, 6), wrong = {1, kVocabulary + 5};
    const std::span<const int> all(tokens);
    using Wanted = decode::StepPart::Wanted;
    decode::StepPart first[] = {{&good, all.first(60)}, {&bad, all.first(9), Wanted::argmax}};
    batch.run(*model->store, first);
    ASSERT_FALSE(first[0].problem || first[1].problem);
    decode::StepPart failing[] = {{&good, all.subspan(60), Wanted::logits}, {&bad, wrong}};
    batch.run(*model->store, failing);
    EXPECT_TRUE(failing[0].problem && failing[1].problem);
    EXPECT_EQ(good.position(), 60);
    EXPECT_EQ(bad.position(), 9);
    decode::StepPart again[] = {{&bad, all.first(2)}, {&good, all.subspan(60), Wanted::logits}};
    batch.run(*model->store, again);
    ASSERT_FALSE(again[0].problem || again[1].problem);
    const Logits got(again[1].logits.begin(), again[1].logits.end());
    const Logits wanted = alone.logits(all);
    EXPECT_TRUE(same_bits(got, rows_of(wanted, 69, 1)));
  }
}

// An engine that ends in the middle, and another over the same folder: tokens and log-probabilities are those of one that
// went through, and what was recorded is used once.
TEST_F(Scheduling, AnAnswerGoesOnAfterARestart) {
  for (const auto& [file, mode] : {std::pair(full_, NumericMode::native), std::pair(sliding_, NumericMode::native),
                                   std::pair(hybrid_, NumericMode::native), std::pair(full_, NumericMode::reference)}) {
    SCOPED_TRACE(file.filename().string());
    const models::ModelOptions model = options_for(file, "dense", 0, mode);
    GenerationRequest request = mixed_requests(2, 1).back();
    request.prompt = random_tokens(90, 8);
    request.sampling.repetition_penalty = 1.2;
    request.max_tokens = 60;
    GenerationRequest other = request;
    other.sampling.seed = 99;
    const std::vector<Answer> wanted = answers_alone(model, {request, other});
    EngineOptions options(prompts(std::size_t{8} << 20));
    options.cache.folder = folder_ / ("cold " + file.filename().string() + (mode == NumericMode::native ? "" : " reference"));
    options.checkpoint_every = 8;
    std::optional<decode::Job> job;  // outlives its engine: one that is dropped sooner is cancelled
    {
      decode::EngineOptions interrupted = options;
      interrupted.event_limit = 16;  // the answer waits for its reader, so it cannot end before the engine does
      decode::Engine engine(model, Log(), interrupted);
      job.emplace(engine.submit(request));
      for (int seen = 0; seen < 21; ++seen) ASSERT_TRUE(job->next().has_value());
    }
    decode::Engine engine(model, Log(), options);
    const decode::EngineStats before = engine.stats();
    EXPECT_EQ(ask(engine, other), wanted[1]);
    EXPECT_EQ(engine.stats().answer_tokens - before.answer_tokens, 60);
    EXPECT_EQ(ask(engine, request), wanted[0]);
    const std::int64_t made = engine.stats().answer_tokens - before.answer_tokens - 60;
    EXPECT_LE(made, 60 - 21) << "the others were there";
    EXPECT_EQ(ask(engine, request), wanted[0]);
    EXPECT_EQ(engine.stats().answer_tokens - before.answer_tokens, 60 + made + 60);
    engine.run([](const models::ModelBundle&) {});  // behind the turn that ended it
    EXPECT_TRUE(std::filesystem::is_empty(options.cache.folder / "answers"));
  }
}

// Rows that begin together, one of which another waits for and which leaves while it is computed.
TEST_F(Scheduling, APromptInFlightIsWaitedForAndOutlivesWhoBeganIt) {
  EngineOptions options;
  options.prefill_tokens = 16;
  decode::Engine engine(options_for(hybrid_), Log(), options);
  GenerationRequest request = mixed_requests(1, 1).front();
  request.prompt = random_tokens(900, 5);
  const Answer wanted = ask(engine, request);
  const std::int64_t before = engine.stats().prompt_tokens;
  std::optional<decode::Job> first = engine.submit(request);
  decode::Job second = engine.submit(request), third = engine.submit(request);
  first.reset();
  EXPECT_EQ(collect(second).front(), wanted);
  EXPECT_EQ(collect(third).front(), wanted);
  EXPECT_LE(engine.stats().prompt_tokens - before, 899);
}

}  // namespace
}  // namespace godwit::one_answer
