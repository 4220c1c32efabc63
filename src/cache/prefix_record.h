// A node of the prefix tree as a record of the cold tier, and back. Private to cache.
//
// The parts are the blocks that the node holds, then each snapshot's arrays. The metadata says how many positions of
// each group's block are valid, where the planes lie (`reference`: it is known only once something was stored), and
// what the snapshots are. It comes from disk and is believed only as far as it agrees with the store.
#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "cache/cold_tier.h"
#include "cache/prefix_tree.h"
#include "cache/store_choices.h"

namespace godwit::cache {

// `signature` names everything outside the tokens. Blocks that someone may still append to are copied.
ColdRecord to_record(const PrefixNode& node, const StoreChoices& choices, bool encoded, std::string signature);

// What a record says of its node, before its parts are read.
struct StoredNode {
  ColdHead head;
  std::vector<int> valid;      // by group
  std::vector<int> snapshots;  // positions
  Json metadata;
};
// Absent when the record does not fit the store, whatever is wrong with it.
std::optional<StoredNode> stored_node(ColdHead head, int begin, const StoreChoices& choices, bool encoded);

// Reads the parts of `stored` into `node`, made for its tokens. False: a miss, and the node is as it was.
bool load(ColdTier& cold, const std::string& signature, const StoredNode& stored, const StoreChoices& choices,
          bool encoded, PrefixNode& node);

}  // namespace godwit::cache
