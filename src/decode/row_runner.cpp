#include "decode/row_runner.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/mx_ops.h"
#include "decode/oracle_greedy.h"

namespace godwit::decode {

int native_argmax(const ops::NativeRuntime& runtime, std::span<const float> logits) {
  std::int64_t best = -1;
  runtime.kernels.argmax({logits.data(), static_cast<std::int64_t>(logits.size()), &best});
  if (best < 0 || !std::isfinite(logits[static_cast<std::size_t>(best)]))
    fail(ErrorCode::internal, "sampling", "no token can be chosen: the model's logits hold {}",
         best < 0 ? "no number" : "no finite largest one");
  return static_cast<int>(best);
}

// One step: `outputs` turns the hidden states [tokens, hidden] into the arrays to evaluate beside the state.
template <typename Outputs>
void RowRunner::run(std::span<const int> tokens, Outputs&& outputs) {
  const int count = static_cast<int>(tokens.size());
  const std::array<cache::RowSpan, 1> spans = {cache::RowSpan{&row_, count}};
  cache::Step step = store_.plan(spans);
  const mx::array hidden = bundle_.graph->hidden(mx::array(tokens.begin(), {count}, mx::int32), step);
  std::vector<mx::array> wanted = outputs(hidden);
  for (const mx::array& pending : step.pending()) wanted.push_back(pending);
  mx::eval(wanted);
  step.publish();
  ++counts_.steps;
}

template <typename Outputs>
void RowRunner::run_to_logits(std::span<const int> tokens, Outputs&& outputs) {
  if (tokens.size() == 1 && bundle_.compiled && bundle_.compiled->run(store_, row_, tokens[0], outputs)) {
    ++counts_.steps;
    return;
  }
  run(tokens, [&](const mx::array& hidden) { return outputs(bundle_.graph->logits(hidden)); });
}

template <typename Use>
void RowRunner::run_native(std::span<const int> tokens, ops::StepOutput wanted, Use&& use) {
  const std::int64_t planned = bundle_.executor->counts().planned;
  const int count = static_cast<int>(tokens.size());
  const std::array<cache::RowSpan, 1> spans = {cache::RowSpan{&row_, count}};
  cache::Step step = store_.plan(spans);
  use(bundle_.forward(tokens, step, wanted));
  step.publish();
  ++counts_.steps;
  counts_.planned += bundle_.executor->counts().planned - planned;
}

std::vector<float> RowRunner::native_logits(std::span<const int> tokens) {
  std::vector<float> rows;
  while (!tokens.empty()) {
    const std::size_t count = std::min(chunk_tokens(), tokens.size());
    run_native(tokens.first(count), ops::StepOutput::logits,
               [&](std::span<const float> values) { rows.insert(rows.end(), values.begin(), values.end()); });
    tokens = tokens.subspan(count);
  }
  return rows;
}

int RowRunner::native_greedy(int token) {
  int best = -1;
  run_native({&token, 1}, ops::StepOutput::logits,
             [&](std::span<const float> values) { best = native_argmax(*bundle_.runtime, values); });
  return best;
}

void RowRunner::store(std::span<const int> tokens) {
  if (is_native()) return run_native(tokens, ops::StepOutput::state, [](std::span<const float>) {});
  run(tokens, [](const mx::array&) { return std::vector<mx::array>(); });
}

std::vector<float> RowRunner::logits(std::span<const int> tokens) {
  if (is_native()) return native_logits(tokens);
  std::optional<mx::array> rows;
  run_to_logits(tokens, [&](const mx::array& logits) {
    rows = mx::contiguous(mx::astype(logits, mx::float32));
    return std::vector<mx::array>{*rows};
  });
  return {rows->data<float>(), rows->data<float>() + rows->size()};
}

std::vector<float> RowRunner::hidden(std::span<const int> tokens) {
  std::vector<float> rows;
  const auto keep = [&](std::span<const float> values) { rows.insert(rows.end(), values.begin(), values.end()); };
  while (!tokens.empty()) {
    const auto chunk = tokens.first(std::min(chunk_tokens(), tokens.size()));
    tokens = tokens.subspan(chunk.size());
    if (is_native()) {
      run_native(chunk, ops::StepOutput::hidden, keep);
      continue;
    }
    std::optional<mx::array> values;
    run(chunk, [&](const mx::array& hidden) {
      values = mx::contiguous(mx::astype(hidden, mx::float32));
      return std::vector<mx::array>{*values};
    });
    keep({values->data<float>(), values->size()});
  }
  return rows;
}

int RowRunner::greedy(int token) {
  if (is_native()) return native_greedy(token);
  std::optional<OracleGreedy> choice;
  run_to_logits({&token, 1}, [&](const mx::array& logits) {
    choice = oracle_greedy(logits);
    return std::vector<mx::array>{choice->token, choice->normaliser};
  });
  const float normaliser = choice->normaliser.item<float>();
  if (!std::isfinite(normaliser))
    fail(ErrorCode::internal, "sampling", "no token can be chosen: the logsumexp of the model's logits is {}",
         normaliser);
  return static_cast<int>(choice->token.item<std::uint32_t>());
}

}  // namespace godwit::decode
