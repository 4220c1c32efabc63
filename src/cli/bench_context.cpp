#include "cli/bench_context.h"

#include <vector>

#include "cli/bench_read.h"
#include "cli/bench_rows.h"
#include "cli/bench_support.h"
#include "cli/model_flags.h"
#include "kernels/select.h"

namespace godwit::cli {
namespace {

// Seconds of one decode step behind `length` tokens. Works on a fork, so that every round sees the same length.
double step_seconds(const models::ModelBundle& model, const cache::Row& prompted, int steps) {
  std::vector<cache::Row> rows;
  rows.push_back(prompted.fork(prompted.position()));
  step_rows(model, rows, 1);  // the fork's last block is copied here
  return seconds_of([&] {
           for (int i = 0; i < steps; ++i) step_rows(model, rows, 1);
         }) /
         steps;
}

}  // namespace

Json bench_context(const models::ModelOptions& options, const ContextBenchOptions& bench, const Log& log) {
  const auto model = models::ModelBundle::open(options, log);
  need_native(*model, "--context");
  const std::vector<cache::Row> near = prompted_rows(*model, 1, bench.prompt), far = prompted_rows(*model, 1, bench.context);
  // What a step reads more of: windows hold the same at both lengths once they are full.
  const auto bytes = static_cast<double>(model->store->projected_bytes(bench.context) - model->store->projected_bytes(bench.prompt));
  const PlainRead plain_read;
  std::vector<double> near_s, far_s, rates, shares;
  for (int i = 0; i < bench.repeats; ++i) {
    rates.push_back(plain_read.rate(model->runtime->pool));
    near_s.push_back(step_seconds(*model, near[0], bench.generate));
    far_s.push_back(step_seconds(*model, far[0], bench.generate));
    shares.push_back(bytes / (far_s.back() - near_s.back()) / rates.back());
  }
  return {{"model", options.id},
          {"math", name_of(model->mode)},
          {"kv", cache::to_string(options.kv)},
          {"level", kernels::level_name(options.level)},
          {"threads", options.threads},
          {"prompt", bench.prompt},
          {"context", bench.context},
          {"step_us", median(near_s) * 1e6},
          {"step_us_in_context", median(far_s) * 1e6},
          {"kv_bytes", bytes},
          {"read_bytes_per_s", median(rates)},
          {"read_share", median(shares)}};
}

}  // namespace godwit::cli
