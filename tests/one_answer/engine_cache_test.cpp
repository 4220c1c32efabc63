// The prompt cache inside the engine: what is found again, what is not, and that no answer changes.
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "cache/prefix_cache.h"
#include "decode/engine.h"
#include "one_answer/tiny_gguf.h"
#include "one_answer/tiny_hybrid.h"
#include "support/scripted_model.h"

namespace godwit::one_answer {
namespace {

using decode::PromptCacheOptions;

struct Answer {
  std::vector<int> ids;
  std::vector<double> logprobs;  // of the raw logits: bits that a wrong key or value would change
  int cached = 0;

  bool operator==(const Answer& other) const { return ids == other.ids && logprobs == other.logprobs; }
};

Answer collect(decode::Job job) {
  Answer answer;
  while (const std::optional<decode::TokenEvent> event = job.next()) {
    if (event->id < 0) continue;
    answer.ids.push_back(event->id);
    for (const decode::TokenLogprob& top : event->top_logprobs) answer.logprobs.push_back(top.logprob);
  }
  answer.cached = job.timings().cached_tokens;
  return answer;
}

decode::GenerationRequest request_for(std::vector<int> prompt, int count) {
  decode::GenerationRequest request;
  request.prompt = std::move(prompt);
  request.max_tokens = count;
  request.ignore_eos = true;
  request.sampling.temperature = 0;
  request.logprobs = true;
  request.top_logprobs = 20;
  return request;
}

Answer ask(decode::Engine& engine, const std::vector<int>& prompt, int count = 12) {
  return collect(engine.submit(request_for(prompt, count)));
}

struct Setting {
  std::string kv = "dense";
  int start = 0;
  NumericMode mode = NumericMode::native;
  std::optional<kernels::ActivationForm> activations = {};
};

models::ModelOptions options_for(const std::filesystem::path& file, const Setting& setting = {}) {
  models::ModelOptions options;
  options.path = file;
  options.id = file.filename().string();
  options.mode = setting.mode;
  options.activations = setting.activations;
  options.threads = 1;
  options.kv = cache::parse_kv_policy(setting.kv);
  options.kv.start = setting.start;
  return options;
}

PromptCacheOptions cached(const std::filesystem::path& folder = {}) {
  return {.use = PromptCacheOptions::Use::on, .memory_bytes = std::size_t{64} << 20, .folder = folder};
}

std::vector<int> joined(std::initializer_list<std::vector<int>> parts) {
  std::vector<int> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

std::vector<int> first(const std::vector<int>& tokens, std::size_t count) {
  return {tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(count)};
}

class EngineCache : public ::testing::Test {
 protected:
  EngineCache() {
    write_model(full_, false);
    write_model(sliding_, true);
    write_hybrid_model(hybrid_);
  }
  // What an engine without a cache answers.
  Answer fresh(const std::filesystem::path& file, const std::vector<int>& prompt, const Setting& setting = {},
               int count = 12) {
    decode::Engine engine(options_for(file, setting), Log());
    EXPECT_FALSE(engine.prompt_cache().has_value());
    return ask(engine, prompt, count);
  }

  Folder folder_;
  const std::filesystem::path full_ = folder_ / "full.gguf", sliding_ = folder_ / "sliding.gguf",
                              hybrid_ = folder_ / "hybrid.gguf";
  const std::vector<int> prompt_ = random_tokens(300, 1), more_ = random_tokens(15, 2), other_ = random_tokens(15, 3);
};

// A chunk is 256 tokens, so a start of 310 lies in the first answer.
TEST_F(EngineCache, TheSecondTurnFindsTheWholeFirst) {
  const std::pair<std::filesystem::path, Setting> kCases[] = {{full_, {}},
                                                              {full_, {"affine:4:64"}},
                                                              {full_, {"turbo:8:4", 310}},
                                                              {sliding_, {}},
                                                              {sliding_, {"affine:8:32", 310}},
                                                              {hybrid_, {}},
                                                              {hybrid_, {"turbo:8:4", 310}}};
  for (const auto& [file, setting] : kCases) {
    SCOPED_TRACE(file.filename().string() + " " + setting.kv);
    decode::Engine engine(options_for(file, setting), Log(), cached());
    const Answer one = ask(engine, prompt_, 20);
    EXPECT_EQ(one.cached, 0);
    EXPECT_EQ(one, fresh(file, prompt_, setting, 20));
    const std::vector<int> second = joined({prompt_, one.ids, more_});
    const Answer two = ask(engine, second);
    EXPECT_GE(two.cached, 300 + 20 - 1);
    EXPECT_EQ(two, fresh(file, second, setting));
  }
}

TEST_F(EngineCache, AHitConsumesNothing) {
  decode::Engine engine(options_for(full_), Log(), cached());
  ask(engine, prompt_);
  for (const int at : {200, 299, 65})
    for (const auto& end : {more_, other_, more_, other_}) {
      const std::vector<int> prompt = joined({first(prompt_, static_cast<std::size_t>(at)), end});
      const Answer answer = ask(engine, prompt);
      EXPECT_GE(answer.cached, at);
      EXPECT_EQ(answer, fresh(full_, prompt));
    }
  EXPECT_EQ(ask(engine, prompt_).cached, 299) << "the last token is computed";
  const auto stats = engine.prompt_cache();
  ASSERT_TRUE(stats.has_value());
  EXPECT_EQ(stats->hits, 13u);
  EXPECT_EQ(stats->misses, 1u);
}

TEST_F(EngineCache, APromptThatEndsInsideAChunkOfAnotherSharesWhatIsEqual) {
  decode::Engine engine(options_for(sliding_), Log(), cached());
  const Answer whole = ask(engine, random_tokens(700, 4));
  for (const std::size_t count : {520u, 512u, 300u, 257u, 70u}) {
    const std::vector<int> prompt = joined({first(random_tokens(700, 4), count), more_});
    const Answer answer = ask(engine, prompt);
    EXPECT_EQ(answer, fresh(sliding_, prompt)) << count;
    // A chunk's end is a place to go on from, windows included.
    EXPECT_GE(answer.cached, static_cast<int>(count) / 256 * 256) << count;
  }
}

// Three rounds, one after another and side by side, over one folder.
TEST_F(EngineCache, ModelsInOneProcessDoNotMix) {
  const std::filesystem::path twin = folder_ / "twin.gguf";
  write_model(twin, false, /*seed=*/2);
  const std::filesystem::path files[] = {full_, sliding_, twin};
  const std::vector<std::vector<int>> prompts = {prompt_, joined({first(prompt_, 100), other_}),
                                                 joined({prompt_, more_})};
  std::vector<std::vector<Answer>> alone(3);
  for (std::size_t m = 0; m < 3; ++m)
    for (const auto& prompt : prompts) alone[m].push_back(fresh(files[m], prompt));
  EXPECT_FALSE(alone[0][0] == alone[2][0]);
  std::vector<std::unique_ptr<decode::Engine>> engines;
  for (const auto& file : files)
    engines.push_back(std::make_unique<decode::Engine>(options_for(file), Log(), cached(folder_ / "cold")));
  for (std::size_t p = 0; p < prompts.size(); ++p)
    for (std::size_t m = 0; m < 3; ++m) EXPECT_EQ(ask(*engines[m], prompts[p]), alone[m][p]) << m << " " << p;
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (std::size_t m = 0; m < 3; ++m)
    threads.emplace_back([&, m] {
      for (int round = 0; round < 2; ++round)
        for (std::size_t p = 0; p < prompts.size(); ++p) wrong += !(ask(*engines[m], prompts[p]) == alone[m][p]);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// Engines one after another over one folder. Only the one that is equal in everything finds what the first left.
TEST_F(EngineCache, OnlyAnEqualModelAndPolicyFindsWhatIsOnDisk) {
  const std::filesystem::path cold = folder_ / "cold";
  const Setting setting{"affine:4:64", 20};
  const auto found_by = [&](const std::filesystem::path& file, const Setting& with) {
    decode::Engine engine(options_for(file, with), Log(), cached(cold));
    const Answer answer = ask(engine, prompt_);
    EXPECT_EQ(answer, fresh(file, prompt_, with)) << file << " " << with.kv << " " << with.start;
    return answer.cached;
  };
  EXPECT_EQ(found_by(full_, setting), 0);
  EXPECT_EQ(found_by(full_, setting), 299);
  EXPECT_EQ(found_by(full_, {"affine:4:64", 21}), 0);
  EXPECT_EQ(found_by(full_, {"affine:4:64", 0}), 0);
  EXPECT_EQ(found_by(full_, {"affine:4:32", 20}), 0);
  EXPECT_EQ(found_by(full_, {"turbo:8:4", 20}), 0);
  EXPECT_EQ(found_by(full_, {"turbo:8:4:parity", 20}), 0);
  EXPECT_EQ(found_by(full_, {"dense"}), 0);
  EXPECT_EQ(found_by(full_, {"dense:f16"}), 0);
  EXPECT_EQ(found_by(full_, {"dense", 0, NumericMode::reference}), 0);
  Setting with_f32 = setting, with_int8 = setting;
  with_f32.activations = kernels::ActivationForm::f32;
  with_int8.activations = kernels::ActivationForm::int8;
  EXPECT_EQ(found_by(full_, with_f32), 0);
  EXPECT_EQ(found_by(full_, with_f32), 299);
  EXPECT_EQ(found_by(full_, with_int8), 299) << "what the first had without a word";
  EXPECT_EQ(found_by(sliding_, setting), 0);
  const std::filesystem::path copy = folder_ / "copy.gguf";
  std::filesystem::copy_file(full_, copy);
  EXPECT_EQ(found_by(copy, setting), 299) << "the same weights under another name";
  write_model(copy, false, /*seed=*/2);
  EXPECT_EQ(found_by(copy, setting), 0) << "other weights in the same place";
  EXPECT_EQ(found_by(full_, setting), 299);
}

std::vector<std::filesystem::path> records_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& item : std::filesystem::recursive_directory_iterator(folder))
    if (item.path().extension() == ".kv") files.push_back(item.path());
  return files;
}

TEST_F(EngineCache, DamageOnDiskIsAMissAWarningAndTheSameAnswer) {
  const std::filesystem::path cold = folder_ / "cold";
  const Answer wanted = fresh(full_, prompt_);
  ask(*std::make_unique<decode::Engine>(options_for(full_), Log(), cached(cold)), prompt_);
  const auto files = records_in(cold);
  ASSERT_GE(files.size(), 5u);
  for (const auto& file : files) {
    std::fstream bytes(file, std::ios::binary | std::ios::in | std::ios::out);
    bytes.seekp(static_cast<std::streamoff>(std::filesystem::file_size(file) / 2));
    bytes.put('\x5a');
  }
  std::mutex mutex;
  std::vector<std::string> warnings;
  const Log log([&](LogLevel level, std::string_view message) {
    const std::lock_guard lock(mutex);
    if (level >= LogLevel::warning) warnings.emplace_back(message);
  });
  // Four whole blocks and the end of the prompt. A run finds the first damaged record on its way and replaces it.
  for (const int found : {0, 64, 128, 192, 256}) {
    decode::Engine engine(options_for(full_), log, cached(cold));
    const Answer answer = ask(engine, prompt_);
    EXPECT_EQ(answer, wanted);
    EXPECT_EQ(answer.cached, found);
    EXPECT_EQ(ask(engine, prompt_).cached, 299) << "it goes on in memory";
    const std::lock_guard lock(mutex);
    EXPECT_FALSE(warnings.empty()) << found;
    warnings.clear();
  }
  decode::Engine engine(options_for(full_), log, cached(cold));
  EXPECT_EQ(ask(engine, prompt_).cached, 299) << "and on disk";
}

TEST_F(EngineCache, WhatOthersMayNotReadIsPrivate) {
  const std::filesystem::path cold = folder_ / "cold";
  ask(*std::make_unique<decode::Engine>(options_for(full_), Log(), cached(cold)), prompt_);
  for (const auto& item : std::filesystem::recursive_directory_iterator(cold)) {
    const auto mode = std::filesystem::status(item.path()).permissions();
    EXPECT_EQ(mode & (std::filesystem::perms::group_all | std::filesystem::perms::others_all),
              std::filesystem::perms::none)
        << item.path();
  }
}

TEST_F(EngineCache, TheCapHoldsAfterEveryRequest) {
  PromptCacheOptions options = cached();
  options.memory_bytes = std::size_t{1} << 20;  // a token leaves 2 layers x 2 x 64 x 4 bytes: 1024 tokens
  decode::Engine engine(options_for(full_), Log(), options);
  for (unsigned i = 0; i < 8; ++i) {
    ask(engine, random_tokens(300, 20 + i));
    EXPECT_LE(engine.prompt_cache()->bytes, *options.memory_bytes);
  }
  EXPECT_GT(engine.prompt_cache()->evicted, 0u);
  EXPECT_EQ(ask(engine, random_tokens(300, 27)).cached, 299) << "the newest is there";
  EXPECT_LT(ask(engine, random_tokens(300, 20)).cached, 299) << "the oldest is not";
  const std::vector<int> large = random_tokens(1500, 40);
  EXPECT_EQ(ask(engine, large), fresh(full_, large)) << "larger than the cap";
  EXPECT_LE(engine.prompt_cache()->bytes, *options.memory_bytes);
}

TEST_F(EngineCache, ACancelledAnswerLeavesWhatItComputed) {
  decode::Engine engine(options_for(full_), Log(), cached());
  decode::Job job = engine.submit(request_for(prompt_, 1000));
  ASSERT_TRUE(job.next().has_value());
  job.cancel();
  while (job.next()) {
  }
  const Answer again = ask(engine, prompt_);
  EXPECT_EQ(again.cached, 299);
  EXPECT_EQ(again, fresh(full_, prompt_));
}

TEST_F(EngineCache, LogitsOfAWholePromptArePastIt) {
  decode::Engine with(options_for(full_), Log(), cached()), without(options_for(full_), Log());
  ask(with, prompt_);
  EXPECT_EQ(with.logits(prompt_, false), without.logits(prompt_, false));
  EXPECT_EQ(with.prompt_cache()->hits, 0u);
}

// What stands in the chunk before the failing one may stay; the failing one may not.
TEST(EngineCacheFailure, AStepThatThrowsLeavesNothing) {
  int failures = 1;
  godwit::testing::Script script{.logits = [](int) { return godwit::testing::one_hot(3); }};
  script.context_length = 8192;
  script.on_forward = [&](int from, int) {
    if (from == 2048 && failures-- > 0) fail(ErrorCode::internal, "model", "once");
  };
  decode::Engine engine([&] { return godwit::testing::scripted_bundle(script); }, Log(), cached());
  const std::vector<int> prompt(3000, 1);
  EXPECT_THROW(collect(engine.submit(request_for(prompt, 2))), Error);
  const Answer answer = collect(engine.submit(request_for(prompt, 2)));
  EXPECT_EQ(answer.ids, (std::vector<int>{3, 3}));
  EXPECT_EQ(answer.cached, 2048);
}

TEST_F(EngineCache, ReferenceHasNoneUnlessAsked) {
  PromptCacheOptions options;
  options.use = PromptCacheOptions::Use::in_native;
  const Setting reference{"dense", 0, NumericMode::reference};
  decode::Engine none(options_for(full_, reference), Log(), options);
  EXPECT_FALSE(none.prompt_cache().has_value());
  decode::Engine native(options_for(full_), Log(), options);
  EXPECT_TRUE(native.prompt_cache().has_value());
}

// It finds what the chunks of the same prompt left, and whole chunks of 2048: then nobody can tell.
TEST_F(EngineCache, ReferenceFindsOnlyItsOwnChunkPlan) {
  const Setting settings[] = {{"dense", 0, NumericMode::reference}, {"affine:4:64", 30, NumericMode::reference}};
  const std::vector<int> longer = random_tokens(2100, 6);
  for (const Setting& setting : settings) {
    SCOPED_TRACE(setting.kv);
    decode::Engine engine(options_for(full_, setting), Log(), cached());
    const Answer one = ask(engine, prompt_);
    EXPECT_EQ(one, fresh(full_, prompt_, setting));
    const Answer again = ask(engine, prompt_);
    EXPECT_EQ(again.cached, 299);
    EXPECT_EQ(again, one);
    const std::vector<int> second = joined({prompt_, one.ids, more_});
    const Answer two = ask(engine, second);
    EXPECT_EQ(two.cached, 0) << "its prompt is one chunk";
    EXPECT_EQ(two, fresh(full_, second, setting));
    ask(engine, longer);
    const std::vector<int> other = joined({first(longer, 2070), other_});
    const Answer three = ask(engine, other);
    EXPECT_EQ(three.cached, 2048);
    EXPECT_EQ(three, fresh(full_, other, setting));
  }
}

// A prompt that is the beginning of another is computed in another last chunk, whichever comes first and wherever it was
// kept.
TEST_F(EngineCache, ReferenceFindsNoBeginningOfALongerPrompt) {
  const std::pair<std::filesystem::path, Setting> kCases[] = {
      {full_, {"dense", 0, NumericMode::reference}},
      {full_, {"affine:4:64", 30, NumericMode::reference}},
      {sliding_, {"dense", 0, NumericMode::reference}}};
  for (const auto& [file, setting] : kCases) {
    SCOPED_TRACE(file.filename().string() + " " + setting.kv);
    decode::Engine engine(options_for(file, setting), Log(), cached(folder_ / "plans"));
    for (const std::size_t count : {300u, 200u, 65u, 250u, 64u}) {
      SCOPED_TRACE(count);
      const std::vector<int> prompt = first(prompt_, count);
      const Answer wanted = fresh(file, prompt, setting);
      const Answer one = ask(engine, prompt);
      EXPECT_EQ(one.cached, 0);
      EXPECT_EQ(one, wanted);
    }
    for (const std::size_t count : {64u, 300u, 65u, 200u}) {
      const Answer again = ask(engine, first(prompt_, count));
      EXPECT_EQ(again.cached, static_cast<int>(count) - 1);
      EXPECT_EQ(again, fresh(file, first(prompt_, count), setting)) << count;
    }
  }
}

}  // namespace
}  // namespace godwit::one_answer
