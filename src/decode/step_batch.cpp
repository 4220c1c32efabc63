#include "decode/step_batch.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/mx_error.h"

namespace godwit::decode {
namespace {

bool wants_logits(const StepPart& part) { return part.wanted != StepPart::Wanted::nothing; }

// `work`, with what it throws as the problem of each of `parts`.
template <typename Work>
void guarded(std::span<StepPart> parts, Work&& work) {
  try {
    translate_mx_errors("engine", work);
  } catch (const std::exception& error) {
    for (StepPart& part : parts) part.problem = copy_of(error);
  }
}

}  // namespace

std::exception_ptr copy_of(const std::exception& error) {
  const auto* ours = dynamic_cast<const Error*>(&error);
  const std::string what = error.what();
  const std::size_t end = what.find("] ");
  if (!ours || what.empty() || what.front() != '[' || end == std::string::npos)
    return std::make_exception_ptr(Error(ErrorCode::internal, "engine", what));
  return std::make_exception_ptr(Error(ours->code(), what.substr(1, end - 1), what.substr(end + 2)));
}

void StepBatch::run(const cache::StateStore& store, std::span<StepPart> parts) {
  if (bundle_.mode == NumericMode::native) return guarded(parts, [&] { run_native(store, parts); });
  logits_.resize(std::max(logits_.size(), parts.size()));
  for (std::size_t i = 0; i < parts.size(); ++i)
    guarded(parts.subspan(i, 1), [&] { run_reference(parts[i], logits_[i]); });
}

void StepBatch::run_native(const cache::StateStore& store, std::span<StepPart> parts) {
  spans_.clear();
  tokens_.clear();
  chosen_.clear();
  for (StepPart& part : parts) {
    spans_.push_back({&part.runner->row(), static_cast<int>(part.tokens.size())});
    tokens_.insert(tokens_.end(), part.tokens.begin(), part.tokens.end());
    if (wants_logits(part)) chosen_.push_back(static_cast<int>(tokens_.size()) - 1);
  }
  const std::int64_t planned = bundle_.executor->counts().planned;
  cache::Step step = store.plan(spans_);
  const bool is_headless = chosen_.empty();
  const std::span<const float> values =
      bundle_.forward(tokens_, step, is_headless ? ops::StepOutput::state : ops::StepOutput::logits, chosen_);
  step.publish();
  const bool is_planned = bundle_.executor->counts().planned > planned;
  for (StepPart& part : parts) part.runner->count_step(is_planned);
  if (!is_headless) hand_out(values, parts);
}

void StepBatch::hand_out(std::span<const float> values, std::span<StepPart> parts) const {
  const std::size_t width = values.size() / chosen_.size();
  for (StepPart& part : parts) {
    if (!wants_logits(part)) continue;
    part.logits = values.first(width);
    values = values.subspan(width);
    if (part.wanted != StepPart::Wanted::argmax) continue;
    guarded({&part, 1}, [&] { part.argmax = native_argmax(*bundle_.runtime, part.logits); });
  }
}

void StepBatch::run_reference(StepPart& part, std::vector<float>& logits) const {
  switch (part.wanted) {
    case StepPart::Wanted::nothing:
      return part.runner->store(part.tokens);
    case StepPart::Wanted::argmax:
      GODWIT_CHECK(part.tokens.size() == 1, "{} tokens in front of a choice", part.tokens.size());
      part.argmax = part.runner->greedy(part.tokens[0]);
      return;
    case StepPart::Wanted::logits:
      GODWIT_CHECK(part.tokens.size() == 1, "{} tokens in front of a choice", part.tokens.size());
      logits = part.runner->logits(part.tokens);
      part.logits = logits;
  }
}

}  // namespace godwit::decode
