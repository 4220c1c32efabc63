#include "oracle/golden_run.h"

#include <cstring>
#include <iostream>
#include <sstream>
#include <utility>

#include "base/mx_ops.h"
#include "decode/engine.h"

namespace godwit::oracle {

namespace {

float value_at(const mx::array& array, std::size_t index) {
  return mx::slice(mx::astype(mx::flatten(array), mx::float32), {static_cast<int>(index)},
                   {static_cast<int>(index) + 1})
      .item<float>();
}

std::string describe(const mx::array& array) {
  std::ostringstream out;
  out << array.dtype() << " " << array.shape();
  return out.str();
}

models::ModelOptions reference_options(const std::filesystem::path& model) {
  models::ModelOptions options;
  options.path = model;
  options.id = model.filename().string();
  options.mode = NumericMode::reference;
  return options;
}

Log to_test_output() {
  return Log([](LogLevel level, std::string_view text) {
    if (level >= LogLevel::warning) std::cout << text << "\n";
  });
}

}  // namespace

std::unique_ptr<models::ModelBundle> open_reference(const std::filesystem::path& model) {
  return models::ModelBundle::open(reference_options(model), to_test_output());
}

mx::array forward(const models::ModelBundle& model, cache::Row& row, std::span<const int> tokens) {
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

Answer greedy(const std::filesystem::path& model, const std::vector<int>& prompt, int count) {
  decode::Engine engine(reference_options(model), to_test_output());
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

testing::AssertionResult same_bits(const mx::array& actual, const mx::array& expected) {
  if (actual.dtype() != expected.dtype() || actual.shape() != expected.shape()) {
    return testing::AssertionFailure() << describe(actual) << ", expected " << describe(expected);
  }
  const auto* left = actual.data<std::uint8_t>();
  const auto* right = expected.data<std::uint8_t>();
  const std::size_t width = actual.itemsize();
  std::size_t differing = 0;
  std::size_t first = 0;
  for (std::size_t i = actual.size(); i-- > 0;) {
    if (std::memcmp(left + i * width, right + i * width, width) == 0) continue;
    first = i;
    ++differing;
  }
  if (differing == 0) return testing::AssertionSuccess();
  const std::size_t columns = static_cast<std::size_t>(actual.shape(-1));
  return testing::AssertionFailure() << differing << " of " << actual.size() << " elements differ, first ["
                                     << first / columns << ", " << first % columns
                                     << "]: " << value_at(actual, first) << ", expected "
                                     << value_at(expected, first);
}

}  // namespace godwit::oracle
