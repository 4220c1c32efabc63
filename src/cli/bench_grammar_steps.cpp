#include "cli/bench_grammar_steps.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "decode/engine.h"
#include "decode/grammar_source.h"
#include "models/model_bundle.h"

namespace godwit::cli {
namespace {

constexpr std::string_view kPrompt = "A list of persons as JSON:\n";
constexpr std::string_view kPersons =
    R"({"type":"array","minItems":1000,"items":{"type":"object","properties":{"name":{"type":"string"},
 "age":{"type":"integer"},"tags":{"type":"array","items":{"type":"string"}},"kind":{"enum":["friend","colleague"]}},
 "required":["name","age","tags","kind"],"additionalProperties":false}})";

using Gaps = std::vector<double>;

void add_gaps(decode::Engine& engine, decode::GenerationRequest request, Gaps& gaps) {
  using Clock = std::chrono::steady_clock;
  decode::Job job = engine.submit(std::move(request));
  std::optional<Clock::time_point> before;
  while (const auto event = job.next()) {
    if (event->id < 0) continue;
    const auto now = Clock::now();
    if (before) gaps.push_back(std::chrono::duration<double>(now - *before).count());
    before = now;
  }
}

double quantile(Gaps gaps, double part) {
  if (gaps.empty()) fail(ErrorCode::invalid_argument, "bench", "answers of two tokens and more are needed");
  std::ranges::sort(gaps);
  return gaps[static_cast<std::size_t>(part * static_cast<double>(gaps.size() - 1))];
}

Json times_of(const Gaps& gaps) {
  return {{"median_us", quantile(gaps, 0.5) * 1e6}, {"p99_us", quantile(gaps, 0.99) * 1e6}, {"steps", gaps.size()}};
}

}  // namespace

Json bench_grammar_steps(const models::ModelOptions& options, const GrammarStepsOptions& bench, const Log& log) {
  decode::Engine engine(options, log);
  const models::ModelBundle& model = engine.model();
  const text::Tokenizer& tokenizer = model.need_tokenizer();
  decode::GrammarSource grammars(tokenizer, model.end_ids, model.vocabulary);
  decode::GenerationRequest free;
  free.prompt = tokenizer.encode(kPrompt);
  free.max_tokens = bench.generate;
  free.ignore_eos = true;
  free.sampling.temperature = 0;
  decode::GenerationRequest held = free;
  held.constraint = grammars.constraint(grammars.compile({text::GrammarKind::json_schema, std::string(kPersons), true}));
  Gaps free_gaps, held_gaps;
  for (int i = 0; i < bench.repeats; ++i) {
    add_gaps(engine, free, free_gaps);
    add_gaps(engine, held, held_gaps);
  }
  return {{"free", times_of(free_gaps)},
          {"held", times_of(held_gaps)},
          {"median_times", quantile(held_gaps, 0.5) / quantile(free_gaps, 0.5)},
          {"p99_times", quantile(held_gaps, 0.99) / quantile(free_gaps, 0.99)}};
}

}  // namespace godwit::cli
