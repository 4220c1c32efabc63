#include "cache/conversion.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/mx_ops.h"
#include "cache/reference_codec.h"
#include "kernels/kv_codec.h"

namespace godwit::cache {
namespace {

// The first `slots` positions of a dense block, encoded.
BlockRef encoded_block(const LayerGroup& group, BlockPool& pool, const Block& dense, int slots) {
  BlockRef out = pool.take(group.native_encoded.bytes);
  for (std::size_t s = 0; s < group.layers.size(); ++s) {
    const NativePlanes &from = group.native_dense.slots[s], &to = group.native_encoded.slots[s];
    kernels::re_encode_kv({.from = dense.data(),
                           .from_keys = from.keys,
                           .from_values = from.values,
                           .to = out->data(),
                           .to_keys = to.keys,
                           .to_values = to.values,
                           .slots = slots});
  }
  out->fill = slots;
  return out;
}

void encode_ahead(Row::Impl& row) {
  for (std::size_t g = 0; g < row.tables.size(); ++g) {
    const LayerGroup& group = row.choices->groups[g];
    if (!group.is_encodable()) continue;
    const auto& blocks = row.tables[g].blocks();
    const auto full = static_cast<std::size_t>(row.length / kPositions);
    for (std::size_t b = full; b-- > 0 && blocks[b] && !blocks[b]->encoded;)
      blocks[b]->encoded = encoded_block(group, *row.choices->pool, *blocks[b], kPositions);
  }
}

BlockTable native_encoded(const Row::Impl& row, std::size_t g) {
  const LayerGroup& group = row.choices->groups[g];
  const auto& blocks = row.tables[g].blocks();
  BlockTable table;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    if (!blocks[b]) continue;
    const int slots = std::min(kPositions, row.length - static_cast<int>(b) * kPositions);
    const bool is_ready = slots == kPositions && blocks[b]->encoded;
    table.set(b, is_ready ? blocks[b]->encoded : encoded_block(group, *row.choices->pool, *blocks[b], slots));
  }
  return table;
}

// The planes of every slot over positions [begin, end), in the group's codec, evaluated.
std::vector<std::vector<Components>> reference_planes(const Row::Impl& row, std::size_t g, int begin, int end) {
  const LayerGroup& group = row.choices->groups[g];
  std::vector<std::vector<Components>> slots;
  std::vector<mx::array> all;
  for (const SlotPlaces& places : group.reference_dense->value().slots) {
    std::vector<Components>& planes = slots.emplace_back();
    for (std::size_t p = 0; p < places.size(); ++p) {
      const Components dense = read_plane(row.tables[g], places[p], begin, end);
      planes.push_back(encode(group.codec, p == 0 ? PlaneRole::keys : PlaneRole::values, dense.at(0),
                              dense.at(0).dtype()));
      all.insert(all.end(), planes.back().begin(), planes.back().end());
    }
  }
  mx::eval(all);
  return slots;
}

// Block by block: beside the two tables only one block's arrays are alive.
BlockTable reference_encoded(const Row::Impl& row, std::size_t g) {
  const LayerGroup& group = row.choices->groups[g];
  BlockTable table;
  // All that the blocks hold, also what the oracle's ring has dropped: a row that is cut afterwards comes back to it.
  const int first = row.tables[g].first_position();
  for (int begin = first; begin < row.length;) {
    const int end = std::min((begin / kPositions + 1) * kPositions, row.length);
    const auto slots = reference_planes(row, g, begin, end);
    std::vector<const std::vector<Components>*> pointers;
    for (const auto& planes : slots) pointers.push_back(&planes);
    std::optional<ReferenceLayout>& layout = *group.reference_encoded;
    if (!layout) layout = reference_layout(pointers);
    table.make_room(*row.choices->pool, layout->bytes, begin, end);
    for (std::size_t s = 0; s < slots.size(); ++s)
      write_planes(table, layout->slots[s], slots[s], begin, end - begin);
    begin = end;
  }
  table.keep(first, row.length);
  return table;
}

void turn(Row::Impl& row) {
  std::vector<BlockTable> tables = row.tables;
  for (std::size_t g = 0; g < tables.size(); ++g)
    if (row.choices->groups[g].is_encodable())
      tables[g] = row.choices->is_native() ? native_encoded(row, g) : reference_encoded(row, g);
  row.tables = std::move(tables);
  row.encoded = true;
  // With start 0 the oracle's first chunk is dense however it was cut: nothing before it can be had back exactly.
  row.encoded_at = row.choices->policy().start == 0 ? 0 : row.length;
}

}  // namespace

void maintain(Row::Impl& row) {
  const StoreChoices& choices = *row.choices;
  if (!choices.is_encodable || row.encoded || row.round || row.length == 0) return;
  if (row.length >= choices.policy().start)
    turn(row);
  else if (choices.is_native())
    encode_ahead(row);
}

}  // namespace godwit::cache
