#include "cache/prefix_tree.h"

#include <algorithm>

#include "base/error.h"
#include "base/sha256.h"

namespace godwit::cache {
namespace {

std::size_t common(std::span<const int> a, std::span<const int> b) {
  const std::size_t most = std::min(a.size(), b.size());
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(most), b.begin()).first -
                                  a.begin());
}

std::size_t block_bytes(const BlockRef& block) {
  if (!block) return 0;
  return block->bytes() + (block->encoded ? block->encoded->bytes() : 0);
}

}  // namespace

std::size_t PrefixSnapshot::bytes() const {
  std::size_t total = 0;
  for (const RecurrentRef& memory : recurrent) total += memory ? memory->bytes() : 0;
  return total;
}

std::size_t PrefixNode::bytes() const {
  std::size_t total = 0;
  for (const Held& group : held) total += block_bytes(group.block);
  for (const auto& [position, snapshot] : snapshots) total += snapshot.bytes();
  return total;
}

PrefixTree::PrefixTree(const ColdKey& root, std::size_t groups) : groups_(groups) { root_.key = root; }

// From leaf to leaf, without a stack of its own: nothing here can fail.
PrefixTree::~PrefixTree() {
  for (PrefixNode* node = &root_;;) {
    if (!node->children.empty()) {
      node = node->children.begin()->second.get();
    } else if (node->is_root()) {
      return;
    } else {
      node = node->parent;
      node->children.erase(node->children.begin());
    }
  }
}

PrefixTree::Match PrefixTree::match(std::span<const int> tokens) {
  Match match;
  for (PrefixNode* at = &root_; at->is_root() || at->is_full();) {
    const std::span<const int> rest = tokens.subspan(static_cast<std::size_t>(match.tokens));
    if (rest.empty()) break;
    PrefixNode* best = nullptr;
    std::size_t agreed = 0;
    const auto [first, last] = at->children.equal_range(rest.front());
    for (auto child = first; child != last; ++child)
      if (const std::size_t n = common(child->second->tokens, rest); n > agreed) {
        best = child->second.get();
        agreed = n;
      }
    if (best == nullptr) break;
    match.nodes.push_back(best);
    match.tokens += static_cast<int>(agreed);
    if (agreed < best->tokens.size()) break;
    at = best;
  }
  return match;
}

PrefixNode& PrefixTree::put(PrefixNode& parent, std::span<const int> tokens) {
  GODWIT_CHECK(!tokens.empty() && tokens.size() <= kPositions, "a node of {} tokens", tokens.size());
  GODWIT_CHECK(parent.is_root() || parent.is_full(), "a node behind one that is not full");
  const auto [first, last] = parent.children.equal_range(tokens.front());
  for (auto child = first; child != last; ++child) {
    PrefixNode& node = *child->second;
    const std::size_t agreed = common(node.tokens, tokens);
    if (agreed == tokens.size()) return node;
    if (agreed < node.tokens.size()) continue;
    node.tokens.assign(tokens.begin(), tokens.end());
    node.key = chained_key(parent.key, tokens);
    return node;
  }
  auto node = std::make_unique<PrefixNode>();
  node->parent = &parent;
  node->key = chained_key(parent.key, tokens);
  node->begin = parent.end();
  node->tokens.assign(tokens.begin(), tokens.end());
  node->held.resize(groups_);
  return *parent.children.emplace(tokens.front(), std::move(node))->second;
}

void PrefixTree::remove(PrefixNode& leaf) {
  GODWIT_CHECK(!leaf.is_root() && leaf.children.empty(), "only a leaf can be removed");
  auto& siblings = leaf.parent->children;
  const auto [first, last] = siblings.equal_range(leaf.tokens.front());
  const auto found = std::find_if(first, last, [&](const auto& child) { return child.second.get() == &leaf; });
  siblings.erase(found);
}

ColdKey hashed_key(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return ColdKey::from_hex(hash.hex_digest()).value();
}

ColdKey chained_key(const ColdKey& parent, std::span<const int> tokens) {
  std::vector<std::byte> bytes(parent.bytes.begin(), parent.bytes.end());
  for (const int token : tokens)
    for (int shift = 0; shift < 32; shift += 8)
      bytes.push_back(static_cast<std::byte>(static_cast<unsigned>(token) >> shift));
  return hashed_key(bytes);
}

}  // namespace godwit::cache
