#include "ops/executor.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "base/error.h"
#include "kernels/rope.h"

namespace godwit::ops {
namespace {

// Brings the rows `chosen`, ascending, of `count` rows to the front.
void move_rows(float* rows, std::int64_t width, std::span<const int> chosen, std::int64_t count) {
  std::int64_t to = 0, last = -1;
  for (const int from : chosen) {
    GODWIT_CHECK(from > last && from < count, "token {} behind {} is chosen of {}", from, last, count);
    last = from;
    if (from != to) std::copy_n(rows + from * width, width, rows + to * width);
    ++to;
  }
}

}  // namespace

template <class Work>
void Executor::timed(const char* name, Work&& work) {
  if (!profile_) return work();
  const auto begin = std::chrono::steady_clock::now();
  work();
  const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const auto known = profile_->seconds.find(std::string_view(name));
  if (known != profile_->seconds.end())
    known->second += took;
  else
    profile_->seconds.emplace(name, took);
}

float* Executor::buffer(int index, std::int64_t elements) {
  const std::size_t bytes = static_cast<std::size_t>(elements) * sizeof(float);
  if (buffers_[index].size() < bytes) buffers_[index] = AlignedBuffer(bytes);
  return reinterpret_cast<float*>(buffers_[index].data());
}

std::span<const float> Executor::walk(std::span<const StepNode> nodes, const void* input, std::int64_t tokens,
                                      const StepLayers& layers, const Cut& cut) {
  int target = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const StepNode& node = nodes[i];
    if (i == cut.behind && !cut.tokens.empty()) {
      GODWIT_CHECK(i > 0, "a step without layers has no rows to choose from");
      move_rows(reinterpret_cast<float*>(buffers_[1 - target].data()), nodes[i - 1].width, cut.tokens, tokens);
      tokens = static_cast<std::int64_t>(cut.tokens.size());
    }
    float* const out = buffer(target, tokens * node.width);
    NativeCall call{input, out, tokens, runtime_, layers, {}};
    if (node.rope >= 0) {
      const float* const cosines = rope_places_[static_cast<std::size_t>(node.rope)];
      call.rope = {cosines, cosines + tokens * (node.primitive->rope()->dims / 2)};
    }
    runtime_.scratch.reset();
    timed(node.primitive->name(), [&] { node.primitive->run(call); });
    input = out;
    target = 1 - target;
  }
  if (profile_) ++profile_->runs;
  ++counts_.steps;
  return {static_cast<const float*>(input), static_cast<std::size_t>(tokens * nodes.back().width)};
}

std::span<const float> Executor::run(const mx::array& output, const StepLayers& layers,
                                     std::span<const int> chosen) {
  const StepChain chain = chain_to(output);
  GODWIT_CHECK(chain.source->flags().row_contiguous, "the input of a step is not contiguous");
  return walk(chain.nodes, chain.source->data<char>(), chain.source->shape(0), layers,
              {state_nodes_of(chain.nodes), chosen});
}

std::span<const float> Executor::run(const StepPlan& plan, const StepInput& input, StepOutput wanted,
                                     std::span<const int> chosen) {
  const auto tokens = static_cast<std::int64_t>(input.tokens.size());
  GODWIT_CHECK(std::accumulate(input.row_tokens.begin(), input.row_tokens.end(), std::int64_t{0}) == tokens,
               "{} tokens for rows of others", tokens);
  if (!plan.ropes().empty()) timed("RopeTables", [&] { form_tables(plan, input); });
  const std::span<const StepNode> nodes = plan.nodes(wanted);
  GODWIT_CHECK(!nodes.empty(), "nothing to run");
  const std::span<const float> values = walk(nodes, input.tokens.data(), tokens, input.layers, {plan.state_nodes(), chosen});
  ++counts_.planned;
  return wanted == StepOutput::state ? std::span<const float>() : values;
}

void Executor::prepare(const StepPlan& plan, std::int64_t tokens) {
  int target = 0;
  for (const StepNode& node : plan.nodes(StepOutput::logits)) {
    buffer(target, tokens * node.width);
    target = 1 - target;
  }
  place_tables(plan, tokens);
  positions_.reserve(static_cast<std::size_t>(tokens));
}

void Executor::place_tables(const StepPlan& plan, std::int64_t tokens) {
  std::int64_t elements = 0;
  for (const RopePlan& rope : plan.ropes()) elements += tokens * rope.dims;
  const std::size_t bytes = static_cast<std::size_t>(elements) * sizeof(float);
  if (rope_values_.size() < bytes) rope_values_ = AlignedBuffer(bytes);
  rope_places_.clear();
  auto* place = reinterpret_cast<float*>(rope_values_.data());
  for (const RopePlan& rope : plan.ropes()) {
    rope_places_.push_back(place);
    place += tokens * rope.dims;
  }
}

void Executor::form_tables(const StepPlan& plan, const StepInput& input) {
  const auto tokens = static_cast<std::int64_t>(input.tokens.size());
  positions_.clear();
  for (std::size_t row = 0; row < input.row_tokens.size(); ++row)
    for (int i = 0; i < input.row_tokens[row]; ++i) positions_.push_back(input.row_offsets[row] + i);
  place_tables(plan, tokens);
  for (std::size_t r = 0; r < plan.ropes().size(); ++r) {
    const RopePlan& rope = plan.ropes()[r];
    const std::int64_t half = rope.dims / 2;
    float* const cosines = rope_places_[r];
    float* const sines = cosines + tokens * half;
    runtime_.share(tokens, [&](std::int64_t begin, std::int64_t end) {
      kernels::rope_table({positions_.data() + begin, rope.inverse_frequencies.data(), cosines + begin * half,
                           sines + begin * half, end - begin, half});
    });
  }
}

}  // namespace godwit::ops
