// The tree of cached prefixes: a node holds up to 64 tokens and the blocks that they left, its children continue it.
// Private to cache.
//
// A node that is full has children; one that is not is a leaf and grows when a longer continuation comes. A node's
// key chains the keys of all before it, so it names the whole prefix and everything that could change its bytes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "cache/block.h"
#include "cache/cold_record.h"
#include "cache/recurrent_state.h"
#include "cache/ring_shadow.h"

namespace godwit::cache {

// What a row needs beside blocks to go on from exactly this many tokens.
struct PrefixSnapshot {
  std::vector<std::optional<RingShadow>> rings;
  std::vector<RecurrentRef> recurrent;
  int encoded_at = 0;

  std::size_t bytes() const;
};

struct PrefixNode {
  // The block of one group; a window that has moved on may have left none.
  struct Held {
    BlockRef block;
    int valid = 0;  // leading positions of it that hold these tokens
  };

  PrefixNode* parent = nullptr;
  ColdKey key;
  ColdKey recorded;  // the key under which the cold tier was last given this node,
  std::uint64_t recorded_losses = 0;  // and what it had lost by then
  int begin = 0;  // position of the first token
  std::vector<int> tokens;
  std::vector<Held> held;                        // by group
  std::map<int, PrefixSnapshot> snapshots;       // by position, in (begin, end()]
  std::multimap<int, std::unique_ptr<PrefixNode>> children;  // by first token
  std::uint64_t used = 0;                        // larger: more recently

  int end() const { return begin + static_cast<int>(tokens.size()); }
  bool is_full() const { return static_cast<int>(tokens.size()) == kPositions; }
  bool is_root() const { return parent == nullptr; }
  std::size_t bytes() const;  // of blocks and snapshots
};

class PrefixTree {
 public:
  // `root` names all that can change a cached byte but the tokens.
  PrefixTree(const ColdKey& root, std::size_t groups);
  PrefixTree(PrefixTree&&) = default;  // only of an empty one: nodes point to their root
  ~PrefixTree();                       // a long prompt is a deep tree: not by recursion

  // The nodes along `tokens`, root left out; of the last only some leading tokens may agree.
  struct Match {
    std::vector<PrefixNode*> nodes;
    int tokens = 0;  // that agree
  };
  Match match(std::span<const int> tokens);
  // The node that holds tokens [begin, begin + tokens.size()) behind `parent`, made or grown as needed; what it held
  // stays.
  PrefixNode& put(PrefixNode& parent, std::span<const int> tokens);
  PrefixNode& root() { return root_; }
  // Removes a node without children.
  static void remove(PrefixNode& leaf);
  // Calls fn on every node but the root, a node before its children. Nodes stay meanwhile.
  template <typename Fn>
  void for_nodes(Fn&& fn) {
    std::vector<PrefixNode*> waiting = {&root_};
    while (!waiting.empty()) {
      PrefixNode* const node = waiting.back();
      waiting.pop_back();
      if (!node->is_root()) fn(*node);
      for (auto& [token, child] : node->children) waiting.push_back(child.get());
    }
  }

 private:
  PrefixNode root_;
  std::size_t groups_;
};

// SHA-256 of the bytes.
ColdKey hashed_key(std::span<const std::byte> bytes);
// The key of `tokens` behind a prefix of key `parent`: SHA-256(parent, token ids as little-endian i32).
ColdKey chained_key(const ColdKey& parent, std::span<const int> tokens);

}  // namespace godwit::cache
