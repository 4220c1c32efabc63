#include "cli/bench_batch.h"

#include <chrono>
#include <vector>

#include "cli/bench_rows.h"
#include "cli/bench_support.h"
#include "cli/model_flags.h"
#include "kernels/select.h"
#include "models/model_bundle.h"

namespace godwit::cli {
namespace {

// Tokens per second over all rows, the prompts not counted.
double decode_rate(const models::ModelBundle& model, int count, const BatchBenchOptions& options) {
  std::vector<cache::Row> rows = prompted_rows(model, count, options.prompt);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < options.generate; ++i) step_rows(model, rows, 1);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  return count * options.generate / took.count();
}

}  // namespace

Json bench_batch(const models::ModelOptions& options, const BatchBenchOptions& bench, const Log& log) {
  const auto model = models::ModelBundle::open(options, log);
  need_native(*model, "--rows");
  decode_rate(*model, bench.rows, bench);
  std::vector<double> alone, together;
  for (int i = 0; i < bench.repeats; ++i) {
    alone.push_back(decode_rate(*model, 1, bench));
    together.push_back(decode_rate(*model, bench.rows, bench));
  }
  return {{"model", options.id},
          {"math", name_of(model->mode)},
          {"activations", activations_of(*model)},
          {"specialization", specialization_of(*model)},
          {"level", kernels::level_name(options.level)},
          {"threads", options.threads},
          {"rows", bench.rows},
          {"decode_tok_s_alone", median(alone)},
          {"decode_tok_s_together", median(together)},
          {"times", median(together) / median(alone)}};
}

}  // namespace godwit::cli
