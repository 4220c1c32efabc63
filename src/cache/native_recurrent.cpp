#include "cache/native_recurrent.h"

#include <utility>

namespace godwit::cache {
namespace {

std::vector<NativeRecurrent::Part> parts_of(std::size_t index, std::span<Row::Impl* const> rows,
                                            std::span<const RowSpan> spans) {
  std::vector<NativeRecurrent::Part> parts;
  for (std::size_t r = 0; r < rows.size(); ++r) parts.push_back({&rows[r]->recurrent[index], spans[r].tokens});
  return parts;
}

}  // namespace

NativeRecurrent::NativeRecurrent(const RecurrentNeed& need, int index, ops::DeltaLayer& layer,
                                 std::span<const Part> parts)
    : index_(index), layer_(layer) {
  const RecurrentMemory sizes = empty_memory(need);
  layer_.state_size = static_cast<std::int64_t>(sizes.state.size());
  layer_.tail_size = static_cast<std::int64_t>(sizes.tail.size());
  layer_.stored = false;
  layer_.rows.clear();
  for (const Part& part : parts) {
    auto next = std::make_shared<RecurrentMemory>(empty_memory(need));
    Fresh fresh{.state = part.state, .memory = next, .inputs = {}};
    if (part.state->in_round()) fresh.inputs = std::make_shared<ops::DeltaInputs>();
    layer_.rows.push_back({.memory = moving(part.state->memory(), *next),
                            .tokens = part.tokens,
                            .kept = fresh.inputs.get()});
    part.state->make_room();
    fresh_.push_back(std::move(fresh));
  }
}

NativeRecurrent::NativeRecurrent(const StoreChoices& choices, int index, ops::DeltaLayer& layer,
                                 std::span<Row::Impl* const> rows, std::span<const RowSpan> spans)
    : NativeRecurrent(choices.needs()[static_cast<std::size_t>(index)].recurrent, index, layer,
                      parts_of(choices.places[static_cast<std::size_t>(index)].index, rows, spans)) {}

// Nobody may write to memories that nobody holds any more.
NativeRecurrent::~NativeRecurrent() { layer_.rows.clear(); }

void NativeRecurrent::publish() noexcept {
  layer_.rows.clear();
  for (Fresh& fresh : fresh_) fresh.state->advance(std::move(fresh.memory), std::move(fresh.inputs));
  fresh_.clear();
}

}  // namespace godwit::cache
