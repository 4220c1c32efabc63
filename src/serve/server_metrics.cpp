#include "serve/server_metrics.h"

#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

namespace godwit::serve {
namespace {

constexpr std::array kLongSeconds = {0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0};
constexpr std::array kShortSeconds = {0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0};
constexpr std::array kTokenCounts = {1.0, 8.0, 32.0, 128.0, 512.0, 2048.0, 8192.0, 32768.0, 131072.0};

// A gauge or counter over the engines of loaded models.
struct EngineFamily {
  std::string_view name, type, help;
  double (*value)(const decode::EngineStats&);
};

template <auto Field>
double field(const decode::EngineStats& stats) {
  return static_cast<double>(stats.*Field);
}

using Stats = decode::EngineStats;
constexpr EngineFamily kEngineFamilies[] = {
    {"godwit_requests_running", "gauge", "Answers that are being made.", field<&Stats::rows_running>},
    {"godwit_requests_paused", "gauge", "Answers that wait for their reader.", field<&Stats::rows_paused>},
    {"godwit_requests_waiting", "gauge", "Answers that wait for their turn.", field<&Stats::rows_waiting>},
    {"godwit_kv_bytes", "gauge", "Keys, values and other state that is held.", field<&Stats::resident_bytes>},
    {"godwit_kv_budget_bytes", "gauge", "State that may be held.", field<&Stats::budget_bytes>},
    {"godwit_kv_usage_ratio", "gauge", "Part of the budget that is held.",
     [](const Stats& stats) {
       return stats.budget_bytes > 0
                  ? static_cast<double>(stats.resident_bytes) / static_cast<double>(stats.budget_bytes)
                  : 0;
     }},
    {"godwit_engine_steps_total", "counter", "Steps: forwards over all rows.", field<&Stats::steps>},
    {"godwit_engine_prompt_tokens_total", "counter", "Tokens of prompts that were computed.",
     field<&Stats::prompt_tokens>},
    {"godwit_engine_answer_tokens_total", "counter", "Tokens that were chosen.",
     field<&Stats::answer_tokens>},
    {"godwit_preemptions_total", "counter", "Rows that were put back for want of memory.",
     field<&Stats::preemptions>},
    {"godwit_prefix_cache_hits_total", "counter", "Prompts that began with tokens computed before.",
     field<&Stats::prefix_hits>},
    {"godwit_prefix_cache_hit_tokens_total", "counter", "Tokens that were not computed again.",
     field<&Stats::prefix_tokens>},
};

void add_steps(MetricsText& text, const std::vector<ModelEntry>& models) {
  constexpr std::string_view kSeconds = "godwit_step_seconds", kRows = "godwit_batch_rows";
  text.head(kSeconds, "histogram", "Time of a step: prefill has tokens of prompts in it, decode none.");
  for (const ModelEntry& model : models) {
    if (!model.engine) continue;
    for (const auto& [phase, steps] : {std::pair("prefill", &model.engine->prefill_step_seconds),
                                       std::pair("decode", &model.engine->decode_step_seconds)})
      text.histogram(kSeconds, {{"model", model.id}, {"phase", phase}}, decode::kStepSeconds, steps->counts, steps->sum);
  }
  text.head(kRows, "histogram", "Answers that a step worked on.");
  for (const ModelEntry& model : models)
    if (model.engine)
      text.histogram(kRows, {{"model", model.id}}, decode::kBatchRows, model.engine->batch_rows.counts,
                     model.engine->batch_rows.sum);
}

std::string_view reject_reason(const RequestRecord& record) {
  if (record.status == 429) return "queue_full";
  if (record.status == 503) return record.error == "draining" ? "draining" : "unavailable";
  if (record.error == "context_length_exceeded") return "context";
  if (record.error == "context_over_budget") return "memory";
  return "";
}

std::string_view cancel_reason(const RequestRecord& record) {
  if (record.status == 499) return "client";
  if (record.error == "timeout") return "timeout";
  if (record.error == "draining") return "shutdown";
  return "";
}

std::uint64_t entries_of(const char* folder) {
  std::error_code error;
  std::uint64_t count = 0;
  for (auto at = std::filesystem::directory_iterator(folder, error);
       !error && at != std::filesystem::directory_iterator(); at.increment(error))
    ++count;
  return count;
}

}  // namespace

std::span<const double> long_seconds() { return kLongSeconds; }
std::span<const double> short_seconds() { return kShortSeconds; }
std::span<const double> token_counts() { return kTokenCounts; }

std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t all = 0, resident = 0;
  if (!(file >> all >> resident)) return 0;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

double ServerMetrics::uptime_seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
}

void ServerMetrics::count(const RequestRecord& record) {
  requests_.with({record.route.empty() ? "other" : std::string(record.route), std::to_string(record.status)})
      .add();
  if (record.submitted == 0) {
    if (const auto reason = reject_reason(record); !reason.empty())
      rejects_.with({std::string(reason)}).add();
    return;
  }
  if (const auto reason = cancel_reason(record); !reason.empty()) cancels_.with({std::string(reason)}).add();
  const std::vector<std::string> model = {record.model};
  prompt_tokens_.with(model).add(static_cast<std::uint64_t>(record.prompt_tokens));
  cached_tokens_.with(model).add(static_cast<std::uint64_t>(record.cached_tokens));
  generated_tokens_.with(model).add(static_cast<std::uint64_t>(record.generated_tokens));
  prompt_size_.with(model).observe(record.prompt_tokens);
  answer_size_.with(model).observe(record.generated_tokens);
  whole_.with(model).observe(record.seconds());
  queue_.with(model).observe(record.queue_seconds);
  if (record.first_token_seconds < 0) return;
  first_token_.with(model).observe(record.first_token_seconds);
  prefill_.with(model).observe(record.prefill_seconds);
  decode_.with(model).observe(record.decode_seconds);
}

void ServerMetrics::add_engines(MetricsText& text, const std::vector<ModelEntry>& models) const {
  text.head("godwit_model_info", "gauge", "Models that are served; 1 for each.");
  for (const ModelEntry& model : models)
    text.sample("godwit_model_info",
                {{"model", model.id},
                 {"quantization", model.quantization},
                 {"context", std::to_string(model.context_length)}},
                1);
  text.head("godwit_model_loaded", "gauge", "Whether the model is in memory.");
  for (const ModelEntry& model : models)
    text.sample("godwit_model_loaded", {{"model", model.id}}, model.is_loaded ? 1 : 0);
  for (const EngineFamily& family : kEngineFamilies) {
    text.head(family.name, family.type, family.help);
    for (const ModelEntry& model : models)
      if (model.engine) text.sample(family.name, {{"model", model.id}}, family.value(*model.engine));
  }
  add_steps(text, models);
}

void ServerMetrics::add_process(MetricsText& text) const {
  text.head("godwit_build_info", "gauge", "What this server was built from; always 1.");
  text.sample("godwit_build_info",
              {{"version", build_.version}, {"mlx", build_.mlx}, {"backend", build_.backend}}, 1);
  text.gauge("godwit_uptime_seconds", "Seconds since the start.", uptime_seconds());
  text.gauge("process_resident_memory_bytes", "Resident memory size in bytes.",
             static_cast<double>(resident_bytes()));
  text.gauge("process_open_fds", "Number of open file descriptors.",
             static_cast<double>(entries_of("/proc/self/fd")));
  text.gauge("process_threads", "Number of threads.", static_cast<double>(entries_of("/proc/self/task")));
}

std::string ServerMetrics::text(const std::vector<ModelEntry>& models) const {
  MetricsText text;
  for (const CounterFamily* family : {&requests_, &finished, &row_failures, &cancels_, &rejects_,
                                      &prompt_tokens_, &cached_tokens_, &generated_tokens_})
    text.add(*family);
  for (const HistogramFamily* family :
       {&first_token_, &inter_token, &whole_, &queue_, &prefill_, &decode_, &prompt_size_, &answer_size_})
    text.add(*family);
  add_engines(text, models);
  add_process(text);
  return text.take();
}

}  // namespace godwit::serve
