#include "cache/prefix_record.h"

#include <mlx/allocator.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <map>

#include "base/error.h"
#include "cache/held_positions.h"
#include "cache/reference_layout_json.h"

namespace godwit::cache {
namespace {

// A record depends on its tokens and on nothing that the memory of a block held before or holds beside them.
ColdPart block_part(const PrefixNode::Held& held, const StoreChoices& choices, std::size_t g, bool encoded) {
  const BlockRef block = held_positions(held.block, held.valid, choices.groups[g], encoded, choices.is_native(),
                                        *choices.pool);
  return {{block->data(), block->bytes()}, block};
}

ColdPart array_part(const mx::array& x, const RecurrentRef& owner) {
  return {{static_cast<const std::byte*>(x.data<void>()), x.nbytes()}, owner};
}

Json ring_json(const std::optional<RingShadow>& ring) {
  if (!ring) return nullptr;
  return Json::array({ring->offset(), ring->length(), ring->head()});
}

Json snapshot_json(int position, const PrefixSnapshot& snapshot) {
  Json rings = Json::array(), recurrent = Json::array();
  for (const auto& ring : snapshot.rings) rings.push_back(ring_json(ring));
  for (const RecurrentRef& memory : snapshot.recurrent)
    recurrent.push_back(Json::array({dtype_name(memory->state.dtype()), dtype_name(memory->tail.dtype())}));
  return {{"at", position}, {"encoded_at", snapshot.encoded_at}, {"rings", rings}, {"recurrent", recurrent}};
}

// An integer of a JSON text that a disk gave us, within [least, most]; anything else throws.
int number(const Json& value, int least, int most) {
  if (!value.is_number_integer()) fail(ErrorCode::corrupt_file, "prefix", "no whole number");
  const auto found = value.get<std::int64_t>();
  if (found < least || found > most) fail(ErrorCode::corrupt_file, "prefix", "{} is out of range", found);
  return static_cast<int>(found);
}

const Json& field(const Json& object, const char* name) {
  if (!object.is_object() || !object.contains(name)) fail(ErrorCode::corrupt_file, "prefix", "no '{}'", name);
  return object.at(name);
}

const Json& list(const Json& object, const char* name, std::size_t size) {
  const Json& found = field(object, name);
  if (!found.is_array() || found.size() != size)
    fail(ErrorCode::corrupt_file, "prefix", "'{}' is no list of {}", name, size);
  return found;
}

std::size_t block_bytes(const StoreChoices& choices, const Json& metadata, std::size_t g, bool encoded) {
  const LayerGroup& group = choices.groups[g];
  if (choices.is_native()) return group.native(encoded).bytes;
  return layout_from_json(list(metadata, "layouts", choices.groups.size())[g], group.layers.size()).bytes;
}

struct RecurrentShape {
  mx::Shape state, tail;
};

RecurrentShape recurrent_shape(const StoreChoices& choices, std::size_t index) {
  const RecurrentNeed& r = choices.needs()[static_cast<std::size_t>(choices.recurrent[index])].recurrent;
  return {{r.value_heads, r.value_dim, r.key_dim}, {r.kernel - 1, r.channels}};
}

std::optional<RingShadow> ring_from(const Json& value, int window, int position) {
  if (window == 0 || value.is_null()) return std::nullopt;
  constexpr int kMost = std::numeric_limits<int>::max();
  if (!value.is_array() || value.size() != 3) fail(ErrorCode::corrupt_file, "prefix", "no ring");
  const auto ring = RingShadow::restored(window, number(value[0], position, position), number(value[1], 0, kMost),
                                         number(value[2], 0, kMost));
  if (!ring) fail(ErrorCode::corrupt_file, "prefix", "no such ring");
  return ring;
}

std::size_t bytes_of(const mx::Shape& shape, mx::Dtype dtype) {
  std::size_t bytes = mx::size_of(dtype);
  for (const int n : shape) bytes *= static_cast<std::size_t>(n);
  return bytes;
}

mx::array room(const mx::Shape& shape, mx::Dtype dtype) {
  return mx::array(mx::allocator::malloc(bytes_of(shape, dtype)), shape, dtype);
}

std::span<std::byte> bytes_in(mx::array& x) { return {static_cast<std::byte*>(x.data<void>()), x.nbytes()}; }

// What the parts are read into, in their order.
struct Buffers {
  std::vector<PrefixNode::Held> held;
  std::map<int, PrefixSnapshot> snapshots;
  std::vector<std::span<std::byte>> parts;
};

void add_snapshot(const Json& value, const StoreChoices& choices, int begin, int end, Buffers& buffers) {
  const int position = number(field(value, "at"), begin + 1, end);
  PrefixSnapshot snapshot;
  snapshot.encoded_at = number(field(value, "encoded_at"), 0, position);
  const Json& rings = list(value, "rings", choices.groups.size());
  for (std::size_t g = 0; g < choices.groups.size(); ++g)
    snapshot.rings.push_back(ring_from(rings[g], choices.groups[g].window(), position));
  const Json& recurrent = list(value, "recurrent", choices.recurrent.size());
  for (std::size_t i = 0; i < choices.recurrent.size(); ++i) {
    const RecurrentShape shape = recurrent_shape(choices, i);
    if (!recurrent[i].is_array() || recurrent[i].size() != 2) fail(ErrorCode::corrupt_file, "prefix", "no dtypes");
    auto memory = std::make_shared<RecurrentMemory>(
        RecurrentMemory{room(shape.state, dtype_named(recurrent[i][0])), room(shape.tail, dtype_named(recurrent[i][1]))});
    buffers.parts.push_back(bytes_in(memory->state));
    buffers.parts.push_back(bytes_in(memory->tail));
    snapshot.recurrent.push_back(std::move(memory));
  }
  if (!buffers.snapshots.emplace(position, std::move(snapshot)).second)
    fail(ErrorCode::corrupt_file, "prefix", "two snapshots at {}", position);
}

// Throws when the metadata and the parts' sizes do not belong together.
Buffers buffers_for(const StoredNode& stored, const StoreChoices& choices, bool encoded, int begin) {
  Buffers buffers;
  for (std::size_t g = 0; g < choices.groups.size(); ++g) {
    PrefixNode::Held& held = buffers.held.emplace_back();
    held.valid = stored.valid[g];
    if (held.valid == 0) continue;
    const std::size_t bytes = block_bytes(choices, stored.metadata, g, encoded);
    const std::size_t part = buffers.parts.size();
    if (part >= stored.head.part_bytes.size() || stored.head.part_bytes[part] != bytes)
      fail(ErrorCode::corrupt_file, "prefix", "part {} is no block of {} bytes", part, bytes);
    held.block = choices.pool->take(bytes);
    held.block->fill = held.valid;
    buffers.parts.push_back({held.block->data(), bytes});
  }
  const int end = begin + static_cast<int>(stored.head.tokens.size());
  for (const Json& value : field(stored.metadata, "snapshots")) add_snapshot(value, choices, begin, end, buffers);
  bool fits = buffers.parts.size() == stored.head.part_bytes.size();
  for (std::size_t p = 0; fits && p < buffers.parts.size(); ++p)
    fits = buffers.parts[p].size() == stored.head.part_bytes[p];
  if (!fits) fail(ErrorCode::corrupt_file, "prefix", "the parts are not what the metadata says");
  return buffers;
}

// The first row of a process learns from disk where the planes lie.
void adopt_layouts(const StoredNode& stored, const StoreChoices& choices, bool encoded) {
  if (choices.is_native()) return;
  for (std::size_t g = 0; g < choices.groups.size(); ++g) {
    const ReferenceLayout found =
        layout_from_json(field(stored.metadata, "layouts")[g], choices.groups[g].layers.size());
    std::optional<ReferenceLayout>& layout = choices.groups[g].reference(encoded);
    if (layout && !(*layout == found)) fail(ErrorCode::corrupt_file, "prefix", "planes lie elsewhere");
    layout = found;
  }
}

// Where a record's parts are, by what its metadata says.
struct Content {
  std::vector<int> valid;
  std::vector<std::size_t> blocks;  // by group: the part, where valid is not 0
  struct Snapshot {
    Json metadata;
    std::size_t first_part, parts;
  };
  std::map<int, Snapshot> snapshots;
  Json metadata;
};

Content content_of(const std::string& text, std::size_t parts) {
  constexpr int kMost = std::numeric_limits<int>::max();
  Content content;
  content.metadata = parse_json(text, "prefix");
  std::size_t part = 0;
  for (const Json& valid : field(content.metadata, "valid")) {
    content.valid.push_back(number(valid, 0, kPositions));
    content.blocks.push_back(part);
    part += content.valid.back() > 0;
  }
  for (const Json& snapshot : field(content.metadata, "snapshots")) {
    const std::size_t own = 2 * field(snapshot, "recurrent").size();
    content.snapshots[number(field(snapshot, "at"), 1, kMost)] = {snapshot, part, own};
    part += own;
  }
  if (part != parts) fail(ErrorCode::corrupt_file, "prefix", "{} parts, and the metadata tells of {}", parts, part);
  return content;
}

bool holds_all(const Content& stored, const Content& asked) {
  const auto is_there = [&](const auto& snapshot) { return stored.snapshots.contains(snapshot.first); };
  return std::ranges::equal(stored.valid, asked.valid, std::ranges::greater_equal()) &&
         std::ranges::all_of(asked.snapshots, is_there);
}

ColdPart part_of(const ColdFile& file, std::size_t index) {
  auto bytes = std::make_shared<std::vector<std::byte>>(file.header().parts.at(index).bytes);
  file.read_part(index, *bytes);
  return {*bytes, bytes};
}

// ColdRecord::Join of prefixes: of each group the block with more valid positions, and every snapshot.
std::optional<ColdRecord> joined(const ColdRecord& record, const ColdFile& file) {
  const Content ours = content_of(record.metadata, record.parts.size());
  const Content stored = content_of(file.header().metadata, file.header().parts.size());
  if (stored.valid.size() != ours.valid.size() || field(stored.metadata, "layouts") != field(ours.metadata, "layouts"))
    return record;
  if (holds_all(stored, ours)) return std::nullopt;
  ColdRecord both = record;
  both.parts.clear();
  Json valid = Json::array(), snapshots = Json::array();
  for (std::size_t g = 0; g < ours.valid.size(); ++g) {
    const bool is_ours = ours.valid[g] >= stored.valid[g];
    valid.push_back(std::max(ours.valid[g], stored.valid[g]));
    if (valid.back() == 0) continue;
    both.parts.push_back(is_ours ? record.parts[ours.blocks[g]] : part_of(file, stored.blocks[g]));
  }
  std::map<int, Content::Snapshot> all = ours.snapshots;
  all.insert(stored.snapshots.begin(), stored.snapshots.end());
  for (const auto& [position, snapshot] : all) {
    const bool is_ours = ours.snapshots.contains(position);
    snapshots.push_back(snapshot.metadata);
    for (std::size_t p = snapshot.first_part; p < snapshot.first_part + snapshot.parts; ++p)
      both.parts.push_back(is_ours ? record.parts[p] : part_of(file, p));
  }
  both.metadata = dump_json({{"valid", valid}, {"layouts", field(ours.metadata, "layouts")}, {"snapshots", snapshots}});
  check_record(both);
  return both;
}

}  // namespace

ColdRecord to_record(const PrefixNode& node, const StoreChoices& choices, bool encoded, std::string signature) {
  ColdRecord record{.key = node.key,
                    .parent = node.parent->key,
                    .signature = std::move(signature),
                    .tokens = node.tokens,
                    .metadata = {},
                    .parts = {},
                    .follows_record = !node.parent->is_root(),
                    .join = joined};
  Json valid = Json::array(), layouts = Json::array(), snapshots = Json::array();
  for (std::size_t g = 0; g < node.held.size(); ++g) {
    const PrefixNode::Held& held = node.held[g];
    valid.push_back(held.block ? held.valid : 0);
    if (held.block) record.parts.push_back(block_part(held, choices, g, encoded));
    if (!choices.is_native()) layouts.push_back(layout_json(choices.groups[g].reference(encoded).value()));
  }
  for (const auto& [position, snapshot] : node.snapshots) {
    snapshots.push_back(snapshot_json(position, snapshot));
    for (const RecurrentRef& memory : snapshot.recurrent) {
      record.parts.push_back(array_part(memory->state, memory));
      record.parts.push_back(array_part(memory->tail, memory));
    }
  }
  record.metadata = dump_json({{"valid", valid}, {"layouts", layouts}, {"snapshots", snapshots}});
  return record;
}

std::optional<StoredNode> stored_node(ColdHead head, int begin, const StoreChoices& choices, bool encoded) {
  try {
    StoredNode node{std::move(head), {}, {}, {}};
    node.metadata = parse_json(node.head.metadata, "prefix");
    const int tokens = static_cast<int>(node.head.tokens.size());
    for (const Json& valid : list(node.metadata, "valid", choices.groups.size()))
      node.valid.push_back(number(valid, 0, tokens));
    for (const Json& snapshot : field(node.metadata, "snapshots"))
      node.snapshots.push_back(number(field(snapshot, "at"), begin + 1, begin + tokens));
    for (std::size_t g = 0; g < node.valid.size(); ++g)
      if (node.valid[g] > 0) static_cast<void>(block_bytes(choices, node.metadata, g, encoded));
    return node;
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool load(ColdTier& cold, const std::string& signature, const StoredNode& stored, const StoreChoices& choices,
          bool encoded, PrefixNode& node) {
  try {
    Buffers buffers = buffers_for(stored, choices, encoded, node.begin);
    if (!cold.read(node.key, signature, buffers.parts)) return false;
    adopt_layouts(stored, choices, encoded);
    for (std::size_t g = 0; g < buffers.held.size(); ++g)
      if (buffers.held[g].valid > node.held[g].valid) node.held[g] = std::move(buffers.held[g]);
    node.snapshots.merge(buffers.snapshots);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace godwit::cache
