#include "cli/bench_rows.h"

#include <algorithm>
#include <cstdint>

#include "base/error.h"
#include "cache/chunks.h"
#include "cli/bench_support.h"

namespace godwit::cli {

void need_native(const models::ModelBundle& model, std::string_view flag) {
  if (model.mode != NumericMode::native)
    fail(ErrorCode::unsupported, "bench", "{} measures native mode; this model runs in reference", flag);
}

void step_rows(const models::ModelBundle& model, std::span<cache::Row> rows, int count, bool is_prompt) {
  std::vector<cache::RowSpan> spans;
  std::vector<int> tokens;
  for (cache::Row& row : rows) {
    spans.push_back({&row, count});
    for (const int token : spread_tokens(row.position(), row.position() + count, model.vocabulary))
      tokens.push_back(token);
  }
  cache::Step step = model.store->plan(spans);
  const auto total = static_cast<int>(tokens.size());
  const std::span<const float> logits =
      model.forward(tokens, step, is_prompt ? ops::StepOutput::state : ops::StepOutput::logits);
  const auto width = static_cast<std::int64_t>(model.vocabulary);
  for (int row = 0; !is_prompt && row < total; ++row) {
    std::int64_t best = -1;
    model.runtime->kernels.argmax({logits.data() + row * width, width, &best});
  }
  step.publish();
}

std::vector<cache::Row> prompted_rows(const models::ModelBundle& model, int count, int prompt) {
  std::vector<cache::Row> rows;
  for (int i = 0; i < count; ++i) rows.push_back(model.store->create());
  for (cache::Row& row : rows)
    while (row.position() < prompt) {
      const int chunk = std::min({prompt - row.position(), cache::kNativeChunk, row.longest_span()});
      step_rows(model, {&row, 1}, chunk, /*is_prompt=*/true);
    }
  return rows;
}

}  // namespace godwit::cli
