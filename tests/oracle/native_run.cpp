#include "oracle/native_run.h"


namespace godwit::oracle {

std::unique_ptr<models::ModelBundle> open_native(const std::filesystem::path& model, NativeSetting setting) {
  models::ModelOptions options;
  options.path = model;
  options.id = model.filename().string();
  options.mode = NumericMode::native;
  options.threads = setting.threads;
  options.level = setting.level;
  options.quantize_on_load = setting.quantize_on_load;
  options.activations = setting.activations;
  options.plan = setting.plan;
  return models::ModelBundle::open(options, Log());
}

std::vector<float> native_step(const models::ModelBundle& model, std::span<const cache::RowSpan> spans,
                               std::span<const int> tokens, bool publish) {
  cache::Step step = model.store->plan(spans);
  const auto values = model.forward(tokens, step, ops::StepOutput::logits);
  std::vector<float> logits(values.begin(), values.end());
  if (publish) step.publish();
  return logits;
}

std::vector<float> native_forward(const models::ModelBundle& model, cache::Row& row,
                                  std::span<const int> tokens) {
  const cache::RowSpan span{&row, static_cast<int>(tokens.size())};
  return native_step(model, {&span, 1}, tokens);
}

std::vector<float> native_plan(const models::ModelBundle& model, std::span<const int> tokens,
                               std::span<const int> spans) {
  cache::Row row = model.store->create();
  std::vector<float> logits;
  std::size_t begin = 0;
  for (const int span : spans) {
    const auto part = native_forward(model, row, tokens.subspan(begin, static_cast<std::size_t>(span)));
    logits.insert(logits.end(), part.begin(), part.end());
    begin += static_cast<std::size_t>(span);
  }
  return logits;
}

std::vector<float> last_rows(const models::ModelBundle& model, const std::vector<float>& logits,
                             std::size_t tokens) {
  const std::size_t count = tokens * static_cast<std::size_t>(model.vocabulary);
  return {logits.end() - static_cast<std::ptrdiff_t>(count), logits.end()};
}

}  // namespace godwit::oracle
