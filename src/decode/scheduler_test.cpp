// The scheduler over a scripted model: who is served when, what ends alone, and what becomes of slow readers.
#include "decode/scheduler.h"

#include <gtest/gtest.h>

#include <iostream>
#include <latch>
#include <random>
#include <thread>

#include "base/error.h"
#include "decode/engine.h"
#include "support/scripted_model.h"

namespace godwit::decode {
namespace {

using testing::one_hot;
using testing::Script;

constexpr unsigned kSeed = 20261203;

GenerationRequest greedy(std::vector<int> prompt, int max_tokens) {
  GenerationRequest request;
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  request.ignore_eos = true;
  request.sampling.temperature = 0;
  return request;
}

std::vector<int> of_length(int length, int token = 1) { return std::vector<int>(static_cast<std::size_t>(length), token); }

Script saying(int token) {
  return {.logits = [token](int) { return one_hot(token); }};
}

struct Answer {
  std::vector<int> ids;
  FinishReason finish = FinishReason::none;
};

Answer collect(Job& job) {
  Answer answer;
  while (const std::optional<TokenEvent> event = job.next()) {
    EXPECT_EQ(answer.finish, FinishReason::none) << "an event behind the last one";
    if (event->id >= 0) answer.ids.push_back(event->id);
    answer.finish = event->finish;
  }
  return answer;
}

Answer collect(Job&& job) { return collect(job); }

ErrorCode error_of(Job& job) {
  try {
    collect(job);
  } catch (const Error& error) {
    EXPECT_FALSE(job.next().has_value()) << "an error is the end";
    return error.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorCode::internal;
}

// The model stops in its first forward until the test has said what else it wants.
struct Gate {
  std::latch entered{1}, open{1};
  bool is_first = true;           // engine thread
  std::vector<std::pair<int, int>> spans = {};  // of each forward; read when nothing runs

  Script script(Script base) {
    base.on_forward = [this](int first, int count) {
      spans.emplace_back(first, count);
      if (!std::exchange(is_first, false)) return;
      entered.count_down();
      open.wait();
    };
    return base;
  }
};

Engine engine_over(const Script& script, const EngineOptions& options = {}) {
  return Engine([script] { return testing::scripted_bundle(script); }, Log(), options);
}

// Bars every token but one, and fails or ends where it is told to.
class OneToken final : public TokenFilter {
 public:
  OneToken(int token, int fails_at, int ends_at) : mask_{1u << token}, fails_at_(fails_at), ends_at_(ends_at) {}
  std::span<const std::uint32_t> mask() override {
    if (made_ == fails_at_) throw std::runtime_error("no token fits");
    return mask_;
  }
  void accept(int) override { ++made_; }
  bool is_over() override { return made_ == ends_at_; }

 private:
  std::vector<std::uint32_t> mask_;
  int fails_at_, ends_at_, made_ = 0;
};

struct OnlyToken final : TokenConstraint {
  OnlyToken(int allowed, int fails, int ends) : token(allowed), fails_at(fails), ends_at(ends) {}
  int token, fails_at, ends_at;
  std::unique_ptr<TokenFilter> start(std::span<const int>) const override {
    return std::make_unique<OneToken>(token, fails_at, ends_at);
  }
};

TEST(Scheduler, rows_take_turns_step_by_step) {
  Gate gate;
  Engine engine = engine_over(gate.script(saying(3)));
  Job first = engine.submit(greedy(of_length(1), 3));
  gate.entered.wait();
  Job second = engine.submit(greedy(of_length(11), 3));
  gate.open.count_down();
  EXPECT_EQ(collect(first).ids, (std::vector<int>{3, 3, 3}));
  EXPECT_EQ(collect(second).ids, (std::vector<int>{3, 3, 3}));
  EXPECT_EQ(gate.spans, (std::vector<std::pair<int, int>>{{0, 1}, {1, 1}, {0, 10}, {2, 1}, {10, 1}, {11, 1}, {12, 1}}));
}

TEST(Scheduler, priority_comes_before_arrival) {
  Gate gate;
  EngineOptions options;
  options.max_rows = 1;
  Engine engine = engine_over(gate.script(saying(3)), options);
  Job running = engine.submit(greedy(of_length(1), 1));
  gate.entered.wait();
  std::vector<Job> jobs;
  for (const auto& [length, priority] : {std::pair(10, 5), std::pair(20, 0), std::pair(30, -1), std::pair(40, 0)}) {
    GenerationRequest request = greedy(of_length(length, length / 10), 1);
    request.priority = priority;
    jobs.push_back(engine.submit(request));
  }
  gate.open.count_down();
  for (Job& job : jobs) EXPECT_EQ(collect(job).ids.size(), 1u);
  std::vector<int> order;
  for (const auto& [first, count] : gate.spans)
    if (count > 1) order.push_back(count + 1);
  EXPECT_EQ(order, (std::vector<int>{30, 20, 40, 10}));
}

// Shorter prompts pass a long one for as long as its ageing lets them.
TEST(Scheduler, a_long_prompt_is_not_starved_by_short_ones) {
  Gate gate;
  Script script = gate.script(saying(3));
  script.context_length = 20000;
  EngineOptions options;
  options.max_rows = 4;
  Engine engine = engine_over(script, options);
  Job running = engine.submit(greedy(of_length(1), 1));
  gate.entered.wait();
  Job large = engine.submit(greedy(of_length(8192, 1), 1));
  std::vector<Job> small;
  for (int i = 0; i < 40; ++i) small.push_back(engine.submit(greedy(of_length(513, i % 14 + 2), 1)));
  gate.open.count_down();
  collect(large);
  for (Job& job : small) collect(job);
  int passed = 0;
  for (std::size_t i = 1; gate.spans[i].second != 2048; ++i) passed += gate.spans[i].second;
  EXPECT_LE(passed, 8192 / StepPlanner::kAgeing + 4 * 513);
  EXPECT_GT(passed, 0);
}

TEST(Scheduler, what_fails_in_a_row_ends_it_alone) {
  Script script{.logits = [](int) { return std::vector<float>(16, 0.0f); }};
  script.on_forward = [](int first, int) {
    if (first == 20) fail(ErrorCode::unsupported, "model", "position 20");
  };
  Engine engine = engine_over(script);
  GenerationRequest request = greedy({1, 2}, 12);
  request.sampling.temperature = 1;
  request.sampling.seed = 7;
  const std::vector<int> wanted = collect(engine.submit(request)).ids;
  GenerationRequest failing = request, broken = greedy(of_length(19, 3), 30);
  failing.constraint = std::make_shared<OnlyToken>(5, /*fails=*/3, /*ends=*/-1);
  for (int round = 0; round < 4; ++round) {
    Job bad = engine.submit(failing), good = engine.submit(request), ugly = engine.submit(broken);
    EXPECT_EQ(collect(good).ids, wanted);
    EXPECT_EQ(error_of(bad), ErrorCode::internal);
    EXPECT_EQ(error_of(ugly), ErrorCode::unsupported);
  }
  failing.choices = 3;
  Job choices = engine.submit(failing);
  EXPECT_EQ(error_of(choices), ErrorCode::internal);
  EXPECT_EQ(collect(engine.submit(request)).ids, wanted);
  EXPECT_EQ(engine.stats().failed, 9);
}

TEST(Scheduler, filters_and_limits_end_an_answer_where_they_say) {
  Script script{.logits = [](int) { return one_hot(7); }};
  script.end_ids = {7};
  Engine engine = engine_over(script);
  GenerationRequest request = greedy({1}, 9);
  request.ignore_eos = false;
  EXPECT_TRUE(collect(engine.submit(request)).ids.empty());
  request.min_tokens = 3;  // zero is the best of the others
  Answer answer = collect(engine.submit(request));
  EXPECT_EQ(answer.ids, (std::vector<int>{0, 0, 0}));
  EXPECT_EQ(answer.finish, FinishReason::stop);
  request.stop_token_ids = {0};
  EXPECT_EQ(collect(engine.submit(request)).ids, (std::vector<int>{1, 1, 1}));
  request.constraint = std::make_shared<OnlyToken>(5, /*fails=*/-1, /*ends=*/4);
  answer = collect(engine.submit(request));
  EXPECT_EQ(answer.ids, (std::vector<int>{5, 5, 5, 5}));
  EXPECT_EQ(answer.finish, FinishReason::stop);
  request.max_tokens = 2;
  EXPECT_EQ(collect(engine.submit(request)).finish, FinishReason::length);
  GenerationRequest nothing = request;
  nothing.constraint = std::make_shared<OnlyToken>(5, /*fails=*/-1, /*ends=*/0);
  answer = collect(engine.submit(nothing));
  EXPECT_TRUE(answer.ids.empty());
  EXPECT_EQ(answer.finish, FinishReason::stop);
  EXPECT_EQ(engine.stats().failed, 0);
}

// What is said against a request, and whether it was said before anything was done.
std::string refusal_of(Engine& engine, const GenerationRequest& request, bool& is_at_once) {
  is_at_once = true;
  try {
    Job job = engine.submit(request);
    is_at_once = false;
    collect(job);
  } catch (const Error& error) {
    return error.code() == ErrorCode::invalid_argument ? error.what() : "another code";
  }
  return "";
}

TEST(Scheduler, bars_that_contradict_each_other_end_their_own_request_and_say_which) {
  Engine engine = engine_over(saying(5));
  const GenerationRequest plain = greedy({1}, 4);
  bool is_at_once = false;
  GenerationRequest request = plain;
  request.sampling.allowed_ids = {5};
  request.sampling.logit_bias = {{5, -100.0f}};
  EXPECT_EQ(refusal_of(engine, request, is_at_once),
            "[sampling] no token can come here: what logit_bias and allowed_token_ids bar together leaves none of the 16 "
            "tokens");
  EXPECT_TRUE(is_at_once);
  request.sampling.logit_bias = {{5, -99.0f}};
  EXPECT_EQ(refusal_of(engine, request, is_at_once), "") << "a bias that is no ban";
  request.sampling = plain.sampling;
  request.constraint = std::make_shared<OnlyToken>(5, /*fails=*/-1, /*ends=*/4);
  request.stop_token_ids = {5};
  request.min_tokens = 3;
  EXPECT_NE(refusal_of(engine, request, is_at_once).find("the form of the answer and min_tokens"), std::string::npos);
  EXPECT_TRUE(is_at_once);
  request = plain;
  request.sampling.allowed_ids = {5};
  request.sampling.bad_words = {{5, 5}};  // the second token cannot come
  EXPECT_NE(refusal_of(engine, request, is_at_once).find("bad_words and allowed_token_ids"), std::string::npos);
  EXPECT_FALSE(is_at_once);
  EXPECT_EQ(engine.stats().failed, 1);
  EXPECT_EQ(collect(engine.submit(plain)).ids, std::vector<int>(4, 5)) << "it ended alone";
}

TEST(Scheduler, prompts_of_different_salts_are_computed_apart) {
  Gate gate;
  Engine engine = engine_over(gate.script(saying(3)));
  Job running = engine.submit(greedy(of_length(1), 1));
  gate.entered.wait();
  std::vector<Job> jobs;
  for (const char* salt : {"a", "a", "b", ""}) {
    GenerationRequest request = greedy(of_length(40), 2);
    request.cache_salt = salt;
    jobs.push_back(engine.submit(request));
  }
  gate.open.count_down();
  for (Job& job : jobs) EXPECT_EQ(collect(job).ids, (std::vector<int>{3, 3}));
  EXPECT_EQ(std::ranges::count_if(gate.spans, [](const auto& span) { return span.first == 0 && span.second > 1; }), 3);
}

TEST(Scheduler, choices_end_one_by_one) {
  Gate gate;
  Engine engine = engine_over(gate.script(saying(3)));
  GenerationRequest request = greedy(of_length(40), 6);
  request.choices = 3;
  Job job = engine.submit(request);
  gate.entered.wait();
  job.cancel(1);
  gate.open.count_down();
  std::vector<std::vector<FinishReason>> ends(3);
  std::vector<int> made(3);
  while (const std::optional<TokenEvent> event = job.next()) {
    made[static_cast<std::size_t>(event->choice)] += event->id >= 0;
    if (event->finish != FinishReason::none) ends[static_cast<std::size_t>(event->choice)].push_back(event->finish);
  }
  EXPECT_EQ(made, (std::vector<int>{6, 0, 6}));
  EXPECT_EQ(ends, (std::vector<std::vector<FinishReason>>{
                      {FinishReason::length}, {FinishReason::cancelled}, {FinishReason::length}}));
  EXPECT_EQ(gate.spans.front(), (std::pair(0, 39)));
  EXPECT_EQ(gate.spans.size(), 1u + 2 * 6) << "one prompt for all";
}

TEST(Scheduler, a_slow_reader_pauses_its_own_row) {
  Script script = saying(3);
  script.context_length = 1000;
  EngineOptions options;
  options.event_limit = 8;
  options.max_rows = 2;
  Engine engine = engine_over(script, options);
  Job slow = engine.submit(greedy({1}, 100));
  while (engine.stats().rows_paused == 0) std::this_thread::yield();
  EXPECT_EQ(collect(engine.submit(greedy({2}, 7))).ids.size(), 7u);
  Job two = engine.submit(greedy({2}, 7)), three = engine.submit(greedy({4}, 7));  // it gives its place away
  EXPECT_EQ(collect(two).ids.size() + collect(three).ids.size(), 14u);
  EXPECT_EQ(collect(slow).ids, of_length(100, 3));

  options.stall_seconds = 0;
  Engine strict = engine_over(script, options);
  Job slower = strict.submit(greedy({1}, 100));
  while (strict.stats().cancelled == 0) std::this_thread::yield();
  const Answer answer = collect(slower);
  EXPECT_EQ(answer.finish, FinishReason::cancelled);
  EXPECT_EQ(answer.ids.size(), 8u);
}

// Every request gets exactly one end, whatever becomes of it, and no row stays.
TEST(Scheduler, a_storm_of_requests_and_cancels_loses_nothing) {
  std::cout << "seed " << kSeed << "\n";
  Script script{.logits = [](int position) { return one_hot(position % 11); }};
  script.on_forward = [](int first, int) {
    if (first == 33) fail(ErrorCode::internal, "model", "position 33");
  };
  EngineOptions options;
  options.max_rows = 5;
  options.event_limit = 6;
  options.queue_limit = 8;
  Engine engine = engine_over(script, options);
  std::atomic<int> refused = 0, ended = 0;
  const auto client = [&](unsigned number) {
    std::mt19937 random(kSeed + number);
    const auto draw = [&](int most) { return static_cast<int>(random() % static_cast<unsigned>(most)); };
    for (int round = 0; round < 300; ++round) {
      GenerationRequest request = greedy(of_length(1 + draw(36), draw(3)), draw(12));
      request.priority = draw(3);
      request.choices = 1 + draw(3);
      if (draw(8) == 0) request.constraint = std::make_shared<OnlyToken>(5, draw(4), -1);
      try {
        Job job = engine.submit(request);
        for (int seen = draw(4); seen > 0; --seen) job.next();
        if (draw(3) == 0) continue;
        if (draw(3) == 0) job.cancel(draw(request.choices));
        if (draw(3) == 0) job.cancel();
        std::vector<int> ends(static_cast<std::size_t>(request.choices));
        while (const std::optional<TokenEvent> event = job.next())
          ends[static_cast<std::size_t>(event->choice)] += event->finish != FinishReason::none;
        for (const int count : ends) EXPECT_LE(count, 1);
        EXPECT_FALSE(job.next().has_value());
        ++ended;
      } catch (const Error& error) {
        ++(error.code() == ErrorCode::overloaded ? refused : ended);
      }
    }
  };
  std::vector<std::thread> clients;
  for (unsigned number = 0; number < 6; ++number) clients.emplace_back(client, number);
  for (std::thread& thread : clients) thread.join();
  EXPECT_EQ(collect(engine.submit(greedy({1}, 4))).ids.size(), 4u);
  EngineStats stats = engine.stats();
  while (stats.rows_running + stats.rows_paused + stats.rows_waiting > 0) stats = engine.stats();  // dropped ones end
  EXPECT_GT(stats.requests, 300);
  EXPECT_GT(ended, 300);
}

TEST(ChunkSizer, a_joiner_takes_about_as_long_as_the_others) {
  ChunkSizer sizer;
  EXPECT_EQ(sizer.tokens(1, 0), ChunkSizer::kUnmeasured);
  sizer.saw(1, 0, 0.010);
  sizer.saw(8, 0, 0.024);
  sizer.saw(0, 256, 0.256);
  EXPECT_EQ(sizer.tokens(1, 0), 7);   // 7.5 ms of them, and eight rows in all
  EXPECT_EQ(sizer.tokens(8, 0), 16);  // 18, but for what does not fill a tile
  EXPECT_EQ(sizer.tokens(5, 0), 7) << "as beside the nearest smaller number that was seen";
  EXPECT_EQ(sizer.tokens(8, 16384), 32) << "a long prompt is read for enough tokens";
  for (int i = 0; i < 40; ++i) sizer.saw(8, 16, 0.024 + 16 * 0.0005);
  EXPECT_EQ(sizer.tokens(8, 0), 32);  // 36
  for (int i = 0; i < 3; ++i) sizer.saw(8, 16, 0.001);  // faster than nothing beside them: says nothing
  EXPECT_EQ(sizer.tokens(8, 0), 32);
  for (int i = 0; i < 40; ++i) sizer.saw(8, 16, 0.024 + 16 * 0.1);
  EXPECT_EQ(sizer.tokens(8, 0), ChunkSizer::kLeast);
}

}  // namespace
}  // namespace godwit::decode
