#include "serve/metrics.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "serve/server_metrics.h"

namespace godwit::serve {
namespace {

constexpr std::array kBounds = {0.5, 1.0};

TEST(Metrics, TheTextHasAHeadForEachFamilyAndEscapesWhatLabelsHold) {
  CounterFamily asked("asked_total", "What was\nasked \\ by whom.", {"who"});
  asked.with({"a\"b\\c\nd"}).add(3);
  MetricsText text;
  text.add(asked);
  EXPECT_EQ(text.take(),
            "# HELP asked_total What was\\nasked \\\\ by whom.\n# TYPE asked_total counter\n"
            "asked_total{who=\"a\\\"b\\\\c\\nd\"} 3\n");
}

TEST(Metrics, BucketsCountUpToTheirBoundWithIt) {
  HistogramFamily took("took_seconds", "How long.", {}, std::span<const double>(kBounds));
  for (const double seconds : {0.25, 0.5, 0.75, 8.0}) took.with({}).observe(seconds);
  MetricsText text;
  text.add(took);
  EXPECT_EQ(text.take(),
            "# HELP took_seconds How long.\n# TYPE took_seconds histogram\n"
            "took_seconds_bucket{le=\"0.5\"} 2\ntook_seconds_bucket{le=\"1\"} "
            "3\ntook_seconds_bucket{le=\"+Inf\"} 4\n"
            "took_seconds_sum 9.5\ntook_seconds_count 4\n");
}

TEST(Metrics, NothingIsLostBetweenThreads) {
  CounterFamily counters("n_total", "n", {"label"});
  HistogramFamily histograms("h", "h", {"label"}, std::span<const double>(kBounds));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        counters.with({std::to_string(i % 7)}).add();
        histograms.with({std::to_string(i % 7)}).observe(0.5 * (i % 3));
      }
    });
  for (auto& thread : threads) thread.join();
  std::uint64_t count = 0, observed = 0;
  double sum = 0;
  counters.each([&](const auto&, const Counter& counter) { count += counter.value(); });
  histograms.each([&](const auto&, const Histogram& histogram) {
    const Histogram::Reading reading = histogram.read();
    for (const std::int64_t values : reading.counts) observed += static_cast<std::uint64_t>(values);
    sum += reading.sum;
  });
  EXPECT_EQ(count, 4000u);
  EXPECT_EQ(observed, 4000u);
  EXPECT_EQ(sum, 4 * (333 * 0.5 + 333 * 1.0));
}

TEST(Metrics, ARequestIsCountedByWhatBecameOfIt) {
  ServerMetrics metrics;
  RequestRecord record{
      .route = "/completions", .model = "tiny", .arrived = RequestRecord::Clock::now(), .status = 200};
  record.submitted = 1;
  record.prompt_tokens = 5;
  record.cached_tokens = 3;
  record.generated_tokens = 7;
  record.first_token_seconds = 0.02;
  metrics.count(record);
  record.status = 499;
  record.first_token_seconds = -1;
  metrics.count(record);
  RequestRecord refused{
      .route = "/completions", .arrived = RequestRecord::Clock::now(), .status = 429, .error = "queue_full"};
  metrics.count(refused);
  metrics.count({.arrived = RequestRecord::Clock::now(), .status = 404});
  const std::string text = metrics.text({{.id = "tiny", .engine = decode::EngineStats{.rows_running = 2}}});
  for (const auto* line : {"godwit_requests_total{route=\"/completions\",code=\"200\"} 1\n",
                           "godwit_requests_total{route=\"/completions\",code=\"499\"} 1\n",
                           "godwit_requests_total{route=\"other\",code=\"404\"} 1\n",
                           "godwit_cancels_total{reason=\"client\"} 1\n",
                           "godwit_admission_rejects_total{reason=\"queue_full\"} 1\n",
                           "godwit_prompt_tokens_total{model=\"tiny\"} 10\n",
                           "godwit_cached_prompt_tokens_total{model=\"tiny\"} 6\n",
                           "godwit_generation_tokens_total{model=\"tiny\"} 14\n",
                           "godwit_time_to_first_token_seconds_count{model=\"tiny\"} 1\n",
                           "godwit_e2e_request_latency_seconds_count{model=\"tiny\"} 2\n",
                           "godwit_requests_running{model=\"tiny\"} 2\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
}

TEST(Metrics, StepsAreDistributedByTimeAndByRows) {
  decode::DistributionCounter<decode::kBatchRows> rows;
  for (const double count : {1.0, 2.0, 3.0, 100.0}) rows.observe(count);
  decode::DistributionCounter<decode::kStepSeconds> seconds;
  seconds.observe(0.004);
  const decode::EngineStats stats{.decode_step_seconds = seconds.snapshot(), .batch_rows = rows.snapshot()};
  const std::string text = ServerMetrics().text({ModelEntry{.id = "m", .engine = stats}});
  for (const auto* line :
       {"# TYPE godwit_batch_rows histogram\n", "godwit_batch_rows_bucket{model=\"m\",le=\"1\"} 1\n",
        "godwit_batch_rows_bucket{model=\"m\",le=\"4\"} 3\n", "godwit_batch_rows_bucket{model=\"m\",le=\"64\"} 3\n",
        "godwit_batch_rows_bucket{model=\"m\",le=\"+Inf\"} 4\n", "godwit_batch_rows_sum{model=\"m\"} 106\n",
        "godwit_batch_rows_count{model=\"m\"} 4\n",
        "godwit_step_seconds_bucket{model=\"m\",phase=\"decode\",le=\"0.002\"} 0\n",
        "godwit_step_seconds_bucket{model=\"m\",phase=\"decode\",le=\"0.005\"} 1\n",
        "godwit_step_seconds_count{model=\"m\",phase=\"prefill\"} 0\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
}

}  // namespace
}  // namespace godwit::serve
