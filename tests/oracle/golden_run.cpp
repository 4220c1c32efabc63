#include "oracle/golden_run.h"

#include <iostream>
#include <optional>
#include <utility>

#include "base/mx_ops.h"
#include "decode/engine.h"

namespace godwit::oracle {

namespace {

models::ModelOptions reference_options(const std::filesystem::path& model, const cache::KvPolicy& kv) {
  models::ModelOptions options;
  options.path = model;
  options.id = model.filename().string();
  options.mode = NumericMode::reference;
  options.kv = kv;
  return options;
}

Log to_test_output() {
  return Log([](LogLevel level, std::string_view text) {
    if (level >= LogLevel::warning) std::cout << text << "\n";
  });
}

}  // namespace

std::unique_ptr<models::ModelBundle> open_reference(const std::filesystem::path& model,
                                                    const cache::KvPolicy& kv) {
  return models::ModelBundle::open(reference_options(model, kv), to_test_output());
}

mx::array forward(const models::ModelBundle& model, cache::Row& row, std::span<const int> tokens) {
  std::optional<mx::array> replayed;
  const auto wanted = [&](const mx::array& logits) { return std::vector{replayed.emplace(mx::contiguous(logits))}; };
  if (model.compiled && tokens.size() == 1 && model.compiled->run(*model.store, row, tokens[0], wanted)) return *replayed;
  const cache::RowSpan span{&row, static_cast<int>(tokens.size())};
  cache::Step step = model.store->plan({&span, 1});
  const mx::array ids(tokens.data(), {static_cast<int>(tokens.size())}, mx::int32);
  mx::array logits = mx::contiguous(model.graph->logits(model.graph->hidden(ids, step)));
  std::vector<mx::array> outputs = step.pending();
  outputs.push_back(logits);
  mx::eval(outputs);
  step.publish();
  return logits;
}

mx::array run_plan(const models::ModelBundle& model, std::span<const int> tokens,
                   std::span<const int> spans) {
  cache::Row row = model.store->create();
  std::vector<mx::array> parts;
  std::size_t begin = 0;
  for (const int span : spans) {
    parts.push_back(forward(model, row, tokens.subspan(begin, static_cast<std::size_t>(span))));
    begin += static_cast<std::size_t>(span);
  }
  EXPECT_EQ(row.position(), static_cast<int>(begin));
  mx::array logits = mx::contiguous(mx::concatenate(parts, 0));
  logits.eval();
  return logits;
}

Answer greedy(const std::filesystem::path& model, const std::vector<int>& prompt, int count,
              const cache::KvPolicy& kv) {
  decode::Engine engine(reference_options(model, kv), to_test_output());
  decode::GenerationRequest request;
  request.prompt = prompt;
  request.max_tokens = count;
  request.sampling.temperature = 0;
  request.ignore_eos = true;
  decode::Job job = engine.submit(std::move(request));
  Answer answer;
  while (const std::optional<decode::TokenEvent> event = job.next()) {
    if (event->id >= 0) answer.tokens.push_back(event->id);
    answer.text += event->text;
  }
  return answer;
}

}  // namespace godwit::oracle
