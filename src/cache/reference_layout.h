// Where the layers of a group lie in a block of `reference` mode: each component of each plane as
// [heads, 64, fields]. Private to cache.
#pragma once

#include <cstddef>
#include <vector>

#include "base/mx.h"
#include "cache/block_table.h"

namespace godwit::cache {

// A plane's stored arrays, each [1, heads, tokens, fields]: one for dense, codes with scales and biases else.
using Components = std::vector<mx::array>;

struct ComponentPlace {
  mx::Dtype dtype;
  int heads = 0, fields = 0;
  std::size_t offset = 0;  // bytes from the start of a block

  std::size_t token_bytes() const;  // of one head
  bool operator==(const ComponentPlace& other) const;
};
// Gives the component the next place from byte `at` on; returns where the one after it may begin.
std::size_t place_component(ComponentPlace& place, std::size_t at);

using SlotPlaces = std::vector<std::vector<ComponentPlace>>;  // [plane][component]

// Arrays carry their dtype, so a layout is worked out from the first arrays that a group stores.
struct ReferenceLayout {
  std::size_t bytes = 0;
  std::vector<SlotPlaces> slots;

  bool operator==(const ReferenceLayout&) const = default;
};

// `slots[s]` are the planes that slot s stores; tokens do not matter.
ReferenceLayout reference_layout(const std::vector<const std::vector<Components>*>& slots);
// Error{internal} where `planes` are not what the layout was made for.
void check_layout(const SlotPlaces& places, const std::vector<Components>& planes);

// Copies evaluated planes of `tokens` tokens into the blocks of positions [position, position + tokens).
void write_planes(const BlockTable& table, const SlotPlaces& places, const std::vector<Components>& planes,
                  int position, int tokens);
// Positions [begin, end), begin < end, as arrays that own their bytes.
Components read_plane(const BlockTable& table, const std::vector<ComponentPlace>& places, int begin, int end);

}  // namespace godwit::cache
