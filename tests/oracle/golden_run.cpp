#include "oracle/golden_run.h"

#include <cstring>
#include <iostream>
#include <sstream>

#include "base/mx_ops.h"

namespace godwit::oracle {

namespace {

constexpr std::size_t kPrefillChunk = 2048;  // mlx-lm's prefill_step_size

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

// Greedy choice from the last row of [tokens, vocabulary].
int choose(const mx::array& logits) {
  const int last = logits.shape(0) - 1;
  const mx::array row = mx::slice(logits, {last, 0}, {last + 1, logits.shape(1)});
  const mx::array scores = mx::subtract(row, mx::logsumexp(row, true));
  return static_cast<int>(mx::argmax(scores, -1).item<std::uint32_t>());
}

}  // namespace

std::unique_ptr<models::ModelBundle> open_reference(const std::filesystem::path& model) {
  models::ModelOptions options;
  options.path = model;
  options.id = model.filename().string();
  options.mode = NumericMode::reference;
  return models::ModelBundle::open(options, Log([](LogLevel level, std::string_view text) {
                                     if (level >= LogLevel::warning) std::cout << text << "\n";
                                   }));
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

std::vector<int> greedy(const models::ModelBundle& model, std::span<const int> prompt, int count) {
  cache::Row row = model.store->create();
  while (prompt.size() > 1) {
    const std::size_t chunk = std::min(kPrefillChunk, prompt.size() - 1);
    forward(model, row, prompt.first(chunk));
    prompt = prompt.subspan(chunk);
  }
  int token = choose(forward(model, row, prompt));
  std::vector<int> result;
  while (true) {
    result.push_back(token);
    if (static_cast<int>(result.size()) == count) return result;
    token = choose(forward(model, row, {&token, 1}));
  }
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
