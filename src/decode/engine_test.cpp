#include "decode/engine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <future>
#include <latch>
#include <limits>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "support/scripted_model.h"

namespace godwit::decode {
namespace {

using testing::one_hot;
using testing::Script;

constexpr float kNever = -std::numeric_limits<float>::infinity();

// The token after position p is tokens[p - first]; the last one repeats.
Script saying(std::vector<int> tokens, int first = 0) {
  return {.logits = [tokens = std::move(tokens), first](int position) {
    const auto at = static_cast<std::size_t>(std::max(position - first, 0));
    return one_hot(tokens[std::min(at, tokens.size() - 1)]);
  }};
}

Engine engine_over(const Script& script) {
  return Engine([script] { return testing::scripted_bundle(script); }, Log());
}

GenerationRequest greedy(std::vector<int> prompt, int max_tokens = -1) {
  GenerationRequest request;
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  request.sampling.temperature = 0;
  return request;
}

struct Answer {
  std::vector<int> ids;
  FinishReason finish = FinishReason::none;
  std::vector<TokenEvent> events;
};

Answer collect(Job& job) {
  Answer answer;
  while (std::optional<TokenEvent> event = job.next()) {
    EXPECT_EQ(answer.finish, FinishReason::none) << "an event after the last one";
    if (event->id >= 0) answer.ids.push_back(event->id);
    answer.finish = event->finish;
    answer.events.push_back(std::move(*event));
  }
  return answer;
}

Answer collect(Job&& job) { return collect(job); }

template <typename Body>
std::pair<ErrorCode, std::string> error_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  ADD_FAILURE() << "nothing was thrown";
  return {ErrorCode::internal, ""};
}

TEST(Engine, ends_at_any_id_of_the_end_set_and_reports_no_end_id) {
  Script script = saying({1, 7, 3});
  script.end_ids = {2, 5, 7};
  Engine engine = engine_over(script);
  Job job = engine.submit(greedy({4}));
  const Answer answer = collect(job);
  EXPECT_EQ(answer.ids, (std::vector<int>{1}));
  EXPECT_EQ(answer.finish, FinishReason::stop);
  EXPECT_EQ(job.timings().completion_tokens, 1);
  EXPECT_EQ(job.timings().prompt_tokens, 1);
  EXPECT_FALSE(job.next().has_value());
}

TEST(Engine, an_end_id_as_the_first_token_gives_an_empty_answer) {
  Script script = saying({7});
  script.end_ids = {7};
  Engine engine = engine_over(script);
  Job job = engine.submit(greedy({4, 4}));
  const Answer answer = collect(job);
  EXPECT_TRUE(answer.ids.empty());
  EXPECT_EQ(answer.finish, FinishReason::stop);
  EXPECT_EQ(job.timings().completion_tokens, 0);
}

TEST(Engine, ignore_eos_and_a_model_without_end_ids_run_to_the_limit) {
  Script script = saying({1, 7, 3});
  Engine without = engine_over(script);
  EXPECT_EQ(collect(without.submit(greedy({4}, 3))).ids, (std::vector<int>{1, 7, 3}));
  script.end_ids = {7};
  Engine ignoring = engine_over(script);
  GenerationRequest request = greedy({4}, 3);
  request.ignore_eos = true;
  EXPECT_EQ(collect(ignoring.submit(request)).ids, (std::vector<int>{1, 7, 3}));
}

TEST(Engine, max_tokens_is_exact_and_absent_means_the_rest_of_the_context) {
  Engine engine = engine_over(saying({1, 2, 3}));
  for (const int limit : {0, 1, 2, 3}) {
    Job job = engine.submit(greedy({4, 5}, limit));
    const Answer answer = collect(job);
    EXPECT_EQ(answer.ids.size(), static_cast<std::size_t>(limit));
    EXPECT_EQ(answer.finish, FinishReason::length);
    EXPECT_EQ(job.timings().completion_tokens, limit);
  }
  const Answer all = collect(engine.submit(greedy(std::vector<int>(60, 1))));
  EXPECT_EQ(all.ids.size(), 4u);  // 64 positions in all
  EXPECT_EQ(all.finish, FinishReason::length);
  EXPECT_EQ(collect(engine.submit(greedy(std::vector<int>(60, 1), 1000))).ids.size(), 4u);
}

TEST(Engine, prefills_in_the_plan_of_the_oracle) {
  std::vector<std::pair<int, int>> spans;  // written on the engine thread, read after the job ended
  Script script = saying({1});
  script.context_length = 6000;
  script.on_forward = [&](int first, int count) { spans.emplace_back(first, count); };
  Engine engine = engine_over(script);
  collect(engine.submit(greedy(std::vector<int>(4500, 3), 2)));
  EXPECT_EQ(spans,
            (std::vector<std::pair<int, int>>{{0, 2048}, {2048, 2048}, {4096, 403}, {4499, 1}, {4500, 1}}));
  spans.clear();
  collect(engine.submit(greedy({3}, 1)));
  EXPECT_EQ(spans, (std::vector<std::pair<int, int>>{{0, 1}}));
  spans.clear();
  collect(engine.submit(greedy(std::vector<int>(2049, 3), 1)));
  EXPECT_EQ(spans, (std::vector<std::pair<int, int>>{{0, 2048}, {2048, 1}}));
}

TEST(Engine, refuses_what_cannot_be_served_before_any_work) {
  Engine engine = engine_over(saying({1}));
  const auto refusal = [&](const GenerationRequest& request) {
    return error_of([&] { engine.submit(request); });
  };
  EXPECT_EQ(refusal(greedy({})).first, ErrorCode::invalid_argument);
  const auto [code, message] = refusal(greedy(std::vector<int>(64, 1)));
  EXPECT_EQ(code, ErrorCode::context_overflow);
  EXPECT_NE(message.find("maximum context length is 64 tokens; the prompt has 64 tokens"), std::string::npos)
      << message;
  EXPECT_EQ(refusal(greedy({16})).first, ErrorCode::invalid_argument);
  EXPECT_EQ(refusal(greedy({-1})).first, ErrorCode::invalid_argument);
  EXPECT_EQ(refusal(greedy({1}, -2)).first, ErrorCode::invalid_argument);
  GenerationRequest request = greedy({1});
  request.sampling.top_p = 2;
  EXPECT_EQ(refusal(request).first, ErrorCode::invalid_argument);
  request = greedy({1});
  request.top_logprobs = 2;
  EXPECT_EQ(refusal(request).first, ErrorCode::invalid_argument);  // without logprobs
  request.logprobs = true;
  request.top_logprobs = 21;
  EXPECT_EQ(refusal(request).first, ErrorCode::invalid_argument);
  request = greedy({1});
  request.stop = {"x"};
  EXPECT_EQ(refusal(request).first, ErrorCode::unsupported);  // no tokenizer: stop strings are text
  request.stop = {""};
  EXPECT_FALSE(collect(engine.submit(request)).ids.empty());  // empty stop strings are ignored
}

TEST(Engine, reports_raw_logprobs_for_every_token) {
  Script script = saying({0});
  script.logits = [](int) {
    std::vector<float> row(16, kNever);
    row[3] = std::log(0.5f), row[4] = std::log(0.25f), row[9] = std::log(0.25f);
    return row;
  };
  Engine engine = engine_over(script);
  GenerationRequest request = greedy({1}, 2);
  request.sampling.logit_bias = {{9, 50.0f}};
  request.logprobs = true;
  request.top_logprobs = 5;
  const Answer answer = collect(engine.submit(request));
  ASSERT_EQ(answer.ids, (std::vector<int>{9, 9}));
  for (const TokenEvent& event : answer.events) {
    ASSERT_TRUE(event.logprob.has_value());
    EXPECT_EQ(event.logprob->id, 9);
    EXPECT_NEAR(event.logprob->logprob, std::log(0.25), 1e-7);  // before the bias; logits are f32
    ASSERT_EQ(event.top_logprobs.size(), 3u);                   // only finite ones
    EXPECT_EQ(event.top_logprobs[0].id, 3);
    EXPECT_EQ(event.top_logprobs[1].id, 4);  // equal values: lowest id first
    EXPECT_EQ(event.top_logprobs[2].id, 9);
  }
  request.logprobs = false;
  request.top_logprobs = 0;
  EXPECT_FALSE(collect(engine.submit(request)).events[0].logprob.has_value());
}

TEST(Engine, a_seed_fixes_the_answer_and_unseeded_requests_differ) {
  Script script{.logits = [](int) { return std::vector<float>(16, 0.0f); }};
  Engine engine = engine_over(script);
  const auto sample = [&](std::optional<std::uint64_t> seed, int choice = 0) {
    GenerationRequest request = greedy({1}, 40);
    request.sampling.temperature = 1;
    request.sampling.seed = seed;
    request.choice = choice;
    Job job = engine.submit(request);
    return std::pair(collect(job).ids, job.seed());
  };
  const std::vector<int> base = sample(42).first;
  const auto [unseeded, drawn] = sample({});
  EXPECT_EQ(sample(42).first, base);  // whatever ran between
  EXPECT_NE(sample(42, 1).first, base);
  EXPECT_NE(sample(0).first, base);
  EXPECT_EQ(sample(0).first, sample(0).first);  // zero is a seed like any other
  EXPECT_NE(sample(std::uint64_t{1} << 63).first, sample(0).first);
  EXPECT_NE(sample({}).first, unseeded);
  EXPECT_EQ(sample(drawn).first, unseeded);  // the drawn seed is reported and repeats the answer
}

TEST(Engine, penalties_see_prompt_and_answer) {
  // Tokens 1 and 2 tie at the top, and 1 is in the prompt.
  Script script{.logits = [](int) {
    std::vector<float> row(16, 0.0f);
    row[1] = row[2] = 5.0f, row[3] = 4.5f;
    return row;
  }};
  Engine engine = engine_over(script);
  GenerationRequest request = greedy({1}, 3);
  request.sampling.presence_penalty = 1;  // of tokens that were made: 1, then 2 fall to 4
  EXPECT_EQ(collect(engine.submit(request)).ids, (std::vector<int>{1, 2, 3}));
  request.sampling.presence_penalty = 0;
  request.sampling.repetition_penalty = 1.25;  // of all tokens: 1, then 2 fall to 4
  EXPECT_EQ(collect(engine.submit(request)).ids, (std::vector<int>{2, 3, 1}));
}

TEST(Engine, a_failing_request_ends_alone) {
  std::atomic<int> forwards = 0;
  Script script = saying({1});
  script.on_forward = [&](int first, int) {
    ++forwards;
    if (first == 10) throw std::runtime_error("a primitive refused");
    if (first == 11) fail(ErrorCode::unsupported, "model", "position 11");
  };
  script.logits = [](int position) {
    std::vector<float> row = one_hot(1);
    if (position == 12) row.assign(16, kNever);
    if (position == 13) row[5] = NAN;
    return row;
  };
  Engine engine = engine_over(script);
  const auto failure = [&](int length, double temperature) {
    GenerationRequest request = greedy(std::vector<int>(static_cast<std::size_t>(length), 1), 1);
    request.sampling.temperature = temperature;
    Job job = engine.submit(request);
    const auto error = error_of([&] { job.next(); });
    EXPECT_FALSE(job.next().has_value());
    return error;
  };
  EXPECT_EQ(failure(11, 0), std::pair(ErrorCode::internal, std::string("[engine] a primitive refused")));
  EXPECT_EQ(failure(12, 0).first, ErrorCode::unsupported);
  for (const double temperature : {0.0, 1.0}) {
    EXPECT_EQ(failure(13, temperature).first, ErrorCode::internal);
    EXPECT_EQ(failure(14, temperature).first, ErrorCode::internal);
  }
  EXPECT_EQ(collect(engine.submit(greedy({1}, 3))).ids, (std::vector<int>{1, 1, 1}));
}

// A model that stops in its first forward until the test lets it go.
struct Gate {
  std::latch entered{1};
  std::latch open{1};
  std::once_flag once;
  std::mutex mutex;
  std::vector<int> firsts;  // guarded by mutex

  Script script(Script base) {
    base.on_forward = [this](int first, int) {
      {
        const std::lock_guard lock(mutex);
        firsts.push_back(first);
      }
      std::call_once(once, [this] {
        entered.count_down();
        open.wait();
      });
    };
    return base;
  }
};

TEST(Engine, dropping_a_job_cancels_it_between_prompt_chunks) {
  Gate gate;
  Script script = gate.script(saying({1}));
  script.context_length = 9000;
  Engine engine = engine_over(script);
  {
    const Job job = engine.submit(greedy(std::vector<int>(8000, 2)));
    gate.entered.wait();
  }
  gate.open.count_down();
  EXPECT_EQ(collect(engine.submit(greedy({1}, 1))).ids, (std::vector<int>{1}));
  EXPECT_EQ(gate.firsts, (std::vector<int>{0, 0}));  // one chunk of the dropped job, one step of the next
}

TEST(Engine, a_cancelled_job_says_so_and_a_queued_one_never_runs) {
  Gate gate;
  Engine engine = engine_over(gate.script(saying({1})));
  Job running = engine.submit(greedy({1, 2, 3}));
  gate.entered.wait();
  Job queued = engine.submit(greedy({1, 2, 3}));
  queued.cancel();
  running.cancel();
  bool timed_out = false;
  EXPECT_FALSE(running.next_for(0.01, timed_out).has_value());
  EXPECT_TRUE(timed_out);
  gate.open.count_down();
  EXPECT_EQ(collect(running).finish, FinishReason::cancelled);
  EXPECT_EQ(collect(queued).finish, FinishReason::cancelled);
  EXPECT_EQ(gate.firsts.size(), 1u);
}

TEST(Engine, the_queue_is_bounded_and_cancelled_jobs_free_their_place) {
  Gate gate;
  Engine engine = engine_over(gate.script(saying({1})));
  Job running = engine.submit(greedy({1}, 1));
  gate.entered.wait();
  std::vector<Job> waiting;
  for (std::size_t i = 0; i < EngineOptions().queue_limit; ++i) waiting.push_back(engine.submit(greedy({1}, 1)));
  EXPECT_EQ(error_of([&] { engine.submit(greedy({1}, 1)); }).first, ErrorCode::overloaded);
  waiting.pop_back();
  Job late = engine.submit(greedy({1}, 1));
  gate.open.count_down();
  for (Job& job : waiting) EXPECT_EQ(collect(job).ids.size(), 1u);
  EXPECT_EQ(collect(late).ids.size(), 1u);
}

TEST(Engine, its_end_ends_every_job_with_an_error) {
  auto gate = std::make_unique<Gate>();
  auto engine =
      std::make_unique<Engine>([&] { return testing::scripted_bundle(gate->script(saying({1}))); }, Log());
  Job running = engine->submit(greedy({1, 2, 3}));
  gate->entered.wait();
  Job queued = engine->submit(greedy({1}));
  std::thread closing([&] { engine.reset(); });
  EXPECT_EQ(error_of([&] { queued.next(); }).first, ErrorCode::cancelled);
  gate->open.count_down();
  EXPECT_EQ(error_of([&] { collect(running); }).first, ErrorCode::cancelled);
  closing.join();
}

TEST(Engine, opening_errors_reach_the_caller) {
  const auto [code, message] = error_of([] {
    Engine([]() -> std::unique_ptr<models::ModelBundle> { fail(ErrorCode::not_found, "model", "gone"); },
           Log());
  });
  EXPECT_EQ(code, ErrorCode::not_found);
  EXPECT_EQ(message, "[model] gone");
}

TEST(Engine, serves_requests_from_many_threads) {
  Engine engine = engine_over(saying({1, 2, 3}));
  std::vector<std::future<std::vector<int>>> answers;
  for (int i = 0; i < 8; ++i)
    answers.push_back(
        std::async(std::launch::async, [&] { return collect(engine.submit(greedy({4}, 3))).ids; }));
  for (auto& answer : answers) EXPECT_EQ(answer.get(), (std::vector<int>{1, 2, 3}));
}

// Two models in one process, clients that leave at every moment, and an end while some still wait.
TEST(Engine, cancelling_from_many_threads_and_ending_two_engines_loses_and_mixes_no_answer) {
  auto threes = std::make_unique<Engine>([] { return testing::scripted_bundle(saying({3})); }, Log());
  auto fives = std::make_unique<Engine>([] { return testing::scripted_bundle(saying({5})); }, Log());
  const auto client = [&](int number) {
    const bool is_three = number % 2 == 0;
    const int limit = 1 + number % 7;
    for (int round = 0; round < 40; ++round) {
      Job job = (is_three ? *threes : *fives).submit(greedy({1, 2}, limit));
      for (int seen = 0; seen < round % (limit + 1); ++seen) job.next();
      if (round % 3 == 0) continue;  // dropped where it is: queued, in its prompt or in its answer
      if (round % 3 == 1) job.cancel();
      const Answer rest = collect(job);
      for (const int id : rest.ids) EXPECT_EQ(id, is_three ? 3 : 5);
    }
  };
  std::vector<std::thread> clients;
  for (int number = 0; number < 8; ++number) clients.emplace_back(client, number);
  for (std::thread& thread : clients) thread.join();

  Job late = threes->submit(greedy({1}, -1));
  std::thread waiting([&] {
    try {
      collect(late);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::cancelled);
    }
  });
  threes.reset();
  waiting.join();
  EXPECT_EQ(collect(fives->submit(greedy({1}, 2))).ids, (std::vector<int>{5, 5}));
}

TEST(Engine, logits_of_a_prompt_come_whole_or_stepwise) {
  Script script = saying({5, 6, 7});
  std::vector<int> counts;
  script.on_forward = [&](int, int count) { counts.push_back(count); };
  Engine engine = engine_over(script);
  std::vector<float> wanted;
  for (const int token : {5, 6, 7}) {
    const std::vector<float> row = one_hot(token);
    wanted.insert(wanted.end(), row.begin(), row.end());
  }
  EXPECT_EQ(engine.logits({1, 2, 3}, false), wanted);
  EXPECT_EQ(counts, (std::vector<int>{3}));
  counts.clear();
  EXPECT_EQ(engine.logits({1, 2, 3}, true), wanted);
  EXPECT_EQ(counts, (std::vector<int>{1, 1, 1}));
  EXPECT_EQ(engine.logits(std::vector<int>(64, 1), false).size(), 64u * 16u);  // the whole context fits
  EXPECT_EQ(error_of([&] { engine.logits({}, false); }).first, ErrorCode::invalid_argument);
  EXPECT_EQ(error_of([&] { engine.logits({99}, false); }).first, ErrorCode::invalid_argument);
  EXPECT_EQ(error_of([&] { engine.logits(std::vector<int>(65, 1), false); }).first,
            ErrorCode::context_overflow);
}

}  // namespace
}  // namespace godwit::decode
