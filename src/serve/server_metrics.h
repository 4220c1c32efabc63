// What the server counts of itself. docs/operations.md lists the families.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "serve/metrics.h"
#include "serve/model_directory.h"
#include "serve/request_record.h"

namespace godwit::serve {

// What was built, for build_info and /stats.
struct BuildInfo {
  std::string version = {};  // of Godwit
  std::string mlx = {};
  std::string backend = {};  // where arrays live: cpu, gpu
};

// From 0.01 to 60 s, and from 0.002 to 2 s.
std::span<const double> long_seconds();
std::span<const double> short_seconds();
std::span<const double> token_counts();

class ServerMetrics {
 public:
  explicit ServerMetrics(BuildInfo build = {}) : build_(std::move(build)) {}

  // At the end of a request, once.
  void count(const RequestRecord& record);

  // The whole page: what was counted, and gauges that are read now. Waits for no engine.
  std::string text(const std::vector<ModelEntry>& models) const;

  const BuildInfo& build() const { return build_; }
  double uptime_seconds() const;

  // By `model`, counted while answers are made.
  HistogramFamily inter_token{"godwit_inter_token_latency_seconds",
                              "Time between two tokens of one answer.",
                              {"model"},
                              short_seconds()};
  CounterFamily finished{"godwit_request_success_total",
                         "Answers that came to their end, by what ended them.",
                         {"model", "finish_reason"}};
  CounterFamily row_failures{
      "godwit_row_failures_total", "Answers that an error of their own ended.", {"model"}};

 private:
  void add_engines(MetricsText& text, const std::vector<ModelEntry>& models) const;
  void add_process(MetricsText& text) const;

  BuildInfo build_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  CounterFamily requests_{
      "godwit_requests_total", "Requests that were answered, by route and status.", {"route", "code"}};
  CounterFamily cancels_{"godwit_cancels_total", "Generations that were given up.", {"reason"}};
  CounterFamily rejects_{
      "godwit_admission_rejects_total", "Generations that were refused for want of room.", {"reason"}};
  CounterFamily prompt_tokens_{"godwit_prompt_tokens_total", "Tokens of prompts.", {"model"}};
  CounterFamily cached_tokens_{
      "godwit_cached_prompt_tokens_total", "Tokens of prompts found in the prompt cache.", {"model"}};
  CounterFamily generated_tokens_{"godwit_generation_tokens_total", "Tokens of answers.", {"model"}};
  HistogramFamily first_token_{"godwit_time_to_first_token_seconds",
                               "From the arrival of a request to its first token.",
                               {"model"},
                               long_seconds()};
  HistogramFamily whole_{"godwit_e2e_request_latency_seconds",
                         "From the arrival of a request to the end of its answer.",
                         {"model"},
                         long_seconds()};
  HistogramFamily queue_{
      "godwit_queue_seconds", "From submission to the first step.", {"model"}, long_seconds()};
  HistogramFamily prefill_{"godwit_prefill_seconds", "Computing the prompt.", {"model"}, long_seconds()};
  HistogramFamily decode_{
      "godwit_decode_seconds", "From the first token to the last.", {"model"}, long_seconds()};
  HistogramFamily prompt_size_{
      "godwit_request_prompt_tokens", "Tokens of a request's prompts.", {"model"}, token_counts()};
  HistogramFamily answer_size_{
      "godwit_request_generation_tokens", "Tokens of a request's answers.", {"model"}, token_counts()};
};

// Bytes of memory that the process holds now; 0 where the system does not say.
std::uint64_t resident_bytes();

}  // namespace godwit::serve
