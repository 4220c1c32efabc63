// The way along a prefix, partly in memory and partly on disk, and how far a row could go on from it. Private to cache.
#pragma once

#include <optional>
#include <vector>

#include "cache/prefix_record.h"
#include "cache/prefix_tree.h"
#include "cache/store_choices.h"

namespace godwit::cache {

// Rows of such a store can be resumed only where someone took down what they were: recurrent states and the oracle's
// rings have no token axis, and `reference` converts at the end of a chunk.
bool needs_snapshot(const StoreChoices& choices);

class PrefixPath {
 public:
  struct Part {
    int begin, matched;  // positions [begin, begin + matched) agree
    PrefixNode* node;    // null: on disk only, then `stored` tells of it
    std::optional<StoredNode> stored;
  };

  PrefixPath(const StoreChoices& choices, bool encoded) : choices_(&choices), encoded_(encoded) {}

  void add(PrefixNode& node, int matched);
  void add(StoredNode stored, int begin);
  // Forgets the parts from position `begin` on.
  void cut(int begin);

  std::vector<Part>& parts() { return parts_; }
  const std::vector<Part>& parts() const { return parts_; }
  bool encoded() const { return encoded_; }
  int end() const { return parts_.empty() ? 0 : parts_.back().begin + parts_.back().matched; }
  // Where the leading parts that agree whole end, and the key there; absent before the first.
  int full_end() const;
  std::optional<ColdKey> full_key() const;

  // The longest prefix from which a row can go on with every layer covered; 0: none.
  int longest_usable() const;
  // The oldest position that a row of `prefix` tokens needs of group g: a read sees its whole window.
  int first_needed(std::size_t group, int prefix) const;
  const PrefixSnapshot* snapshot_at(int prefix) const;

 private:
  bool covers(int prefix) const;
  std::vector<int> candidates() const;  // descending

  const StoreChoices* choices_;
  bool encoded_;
  std::vector<Part> parts_;
};

}  // namespace godwit::cache
