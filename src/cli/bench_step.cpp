#include "cli/bench_step.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli/bench_read.h"
#include "cli/bench_rows.h"
#include "cli/bench_support.h"
#include "cli/model_flags.h"
#include "kernels/level.h"

namespace godwit::cli {
namespace {

struct Round {
  double step_s, outside_s;  // of one step; outside the nodes' own run()
  std::map<std::string, double> node_s;
  std::int64_t planned;  // of its steps
};

Round decode_round(const models::ModelBundle& model, const StepBenchOptions& options) {
  std::vector<cache::Row> rows = prompted_rows(model, 1, options.prompt);
  ops::StepProfile profile;
  const std::int64_t before = model.executor->counts().planned;
  model.executor->profile_into(&profile);
  const double took = seconds_of([&] {
    for (int i = 0; i < options.generate; ++i) step_rows(model, rows, 1);
  });
  model.executor->profile_into(nullptr);
  Round round{took / options.generate, took / options.generate, {}, model.executor->counts().planned - before};
  for (const auto& [name, seconds] : profile.seconds) {
    round.node_s[name] = seconds / options.generate;
    round.outside_s -= round.node_s[name];
  }
  return round;
}

}  // namespace

Json bench_step(const models::ModelOptions& options, const StepBenchOptions& bench, const Log& log) {
  const auto model = models::ModelBundle::open(options, log);
  need_native(*model, "--step");
  const PlainRead plain_read;
  decode_round(*model, bench);
  std::vector<cache::Row> rows = prompted_rows(*model, 1, 1);
  const std::int64_t before = model->runtime->weight_bytes;
  step_rows(*model, rows, 1);
  const double bytes = static_cast<double>(model->runtime->weight_bytes - before);
  std::vector<double> steps, outside, rates, shares;
  std::int64_t planned = 0;
  std::map<std::string, std::vector<double>> nodes;
  for (int i = 0; i < bench.repeats; ++i) {
    rates.push_back(plain_read.rate(model->runtime->pool));
    const Round round = decode_round(*model, bench);
    steps.push_back(round.step_s);
    planned += round.planned;
    outside.push_back(round.outside_s / round.step_s);
    shares.push_back(bytes / round.step_s / rates.back());
    for (const auto& [name, seconds] : round.node_s) nodes[name].push_back(seconds * 1e6);
  }
  Json by_node = Json::object();
  for (const auto& [name, microseconds] : nodes) by_node[name] = median(microseconds);
  return {{"model", options.id},
          {"math", name_of(model->mode)},
          {"activations", activations_of(*model)},
          {"specialization", specialization_of(*model)},
          {"level", kernels::level_name(options.level)},
          {"threads", options.threads},
          {"steps", bench.generate * bench.repeats},
          {"planned_steps", planned},
          {"step_us", median(steps) * 1e6},
          {"nodes_us", std::move(by_node)},
          {"outside_share", median(outside)},
          {"weight_bytes", bytes},
          {"read_bytes_per_s", median(rates)},
          {"read_share", median(shares)}};
}

}  // namespace godwit::cli
