#include "cache/prefix_cache.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cache/prefix_path.h"
#include "cache/prefix_record.h"
#include "cache/row_impl.h"
#include "cache/state_store_impl.h"

namespace godwit::cache {

// One tree for each space and form: what a row held densely and what it encoded are different bytes.
struct PrefixCache::Impl {
  struct Wood {
    std::string signature;
    bool encoded;
    PrefixTree tree;
  };

  Wood& wood(const std::string& space, bool encoded);
  struct Found {
    Wood* wood;
    PrefixPath path;
    int prefix;
  };
  // The longer of what both forms offer.
  std::optional<Found> longest(std::span<const int> tokens, const std::string& space, bool use_disk);
  Row row_of(const PrefixPath& path, int prefix);
  PrefixPath path_in(Wood& wood, std::span<const int> tokens, bool use_disk);
  void extend_from_disk(Wood& wood, PrefixPath& path, std::span<const int> tokens);
  bool fetch(Wood& wood, PrefixPath& path, int prefix);
  void hold(Wood& wood, const Row::Impl& row, std::span<const int> tokens);
  void keep_within_caps();
  void drop_snapshots();
  template <typename Which>
  PrefixNode* oldest(Which&& which);
  void count_bytes();

  const StoreChoices& choices;
  std::shared_ptr<const StoreChoices> shared;
  PrefixCacheOptions options;
  ColdTier* cold;
  std::map<std::pair<std::string, bool>, Wood> woods;
  std::uint64_t clock = 0;
  PrefixCacheStats counts;
};

PrefixCache::Impl::Wood& PrefixCache::Impl::wood(const std::string& space, bool encoded) {
  const auto found = woods.find({space, encoded});
  if (found != woods.end()) return found->second;
  const std::string signature = fmt::format("{} | {} | {} | {}", choices.signature.to_string(), options.identity, space,
                                            encoded ? "encoded" : "dense");
  return woods.emplace(std::pair(space, encoded), Wood{signature, encoded, PrefixTree(hashed_key(std::as_bytes(std::span(signature))), choices.groups.size())})
      .first->second;
}

PrefixPath PrefixCache::Impl::path_in(Wood& wood, std::span<const int> tokens, bool use_disk) {
  const PrefixTree::Match match = wood.tree.match(tokens);
  PrefixPath path(choices, wood.encoded);
  int left = match.tokens;
  for (PrefixNode* node : match.nodes) {
    path.add(*node, std::min(left, static_cast<int>(node->tokens.size())));
    left -= static_cast<int>(node->tokens.size());
  }
  if (cold && use_disk) extend_from_disk(wood, path, tokens);
  return path;
}

// Full nodes that only the disk has, then at most one that is not full.
void PrefixCache::Impl::extend_from_disk(Wood& wood, PrefixPath& path, std::span<const int> tokens) {
  ColdKey parent = path.full_key().value_or(wood.tree.root().key);
  for (int at = path.full_end(); at < static_cast<int>(tokens.size());) {
    const auto rest = tokens.subspan(static_cast<std::size_t>(at));
    std::optional<StoredNode> found;
    for (std::size_t n = std::min<std::size_t>(rest.size(), kPositions); n > 0 && !found; --n) {
      // What the tree itself reaches need not be asked for.
      if (at + static_cast<int>(n) <= path.end()) break;
      const ColdKey key = chained_key(parent, rest.first(n));
      std::optional<ColdHead> head = cold->head(key, wood.signature);
      if (head && std::ranges::equal(head->tokens, rest.first(n)))
        found = stored_node(std::move(*head), at, choices, wood.encoded);
    }
    if (!found) return;
    const auto count = static_cast<int>(found->head.tokens.size());
    parent = chained_key(parent, rest.first(static_cast<std::size_t>(count)));
    path.cut(at);
    path.add(std::move(*found), at);
    at += count;
    if (count < kPositions) return;
  }
}

// Brings what only the disk has of the first `prefix` tokens into the tree. False: something was not to be had, and
// the path ends before it.
bool PrefixCache::Impl::fetch(Wood& wood, PrefixPath& path, int prefix) {
  PrefixNode* parent = &wood.tree.root();
  for (PrefixPath::Part& part : path.parts()) {
    if (part.begin >= prefix) break;
    if (part.node == nullptr) {
      PrefixNode& node = wood.tree.put(*parent, part.stored->head.tokens);
      node.used = ++clock;
      if (!load(*cold, wood.signature, *part.stored, choices, wood.encoded, node)) {
        if (node.bytes() == 0 && node.children.empty()) PrefixTree::remove(node);
        path.cut(part.begin);
        return false;
      }
      node.recorded = node.key;
      node.recorded_losses = cold->losses();
      ++counts.cold_hits;
      part.node = &node;
    }
    parent = part.node;
  }
  return true;
}

std::optional<PrefixCache::Impl::Found> PrefixCache::Impl::longest(std::span<const int> tokens,
                                                                   const std::string& space, bool use_disk) {
  std::optional<Found> best;
  for (const bool encoded : {false, true}) {
    if (encoded && !choices.is_encodable) continue;
    Wood& from = wood(space, encoded);
    PrefixPath path = path_in(from, tokens, use_disk);
    const int prefix = path.longest_usable();
    if (prefix > (best ? best->prefix : 0)) best.emplace(Found{&from, std::move(path), prefix});
  }
  return best;
}

Row PrefixCache::Impl::row_of(const PrefixPath& path, int prefix) {
  auto row = std::make_unique<Row::Impl>(shared);
  const PrefixSnapshot* snapshot = path.snapshot_at(prefix);
  for (const PrefixPath::Part& part : path.parts())
    if (part.begin < prefix) part.node->used = ++clock;
  for (std::size_t g = 0; g < choices.groups.size(); ++g)
    for (const PrefixPath::Part& part : path.parts()) {
      if (part.begin >= prefix) break;
      const BlockRef& block = part.node->held[g].block;
      if (block && part.begin + kPositions > path.first_needed(g, prefix))
        row->tables[g].set(static_cast<std::size_t>(part.begin / kPositions), block);
    }
  row->length = prefix;
  row->encoded = path.encoded();
  row->encoded_at = snapshot ? snapshot->encoded_at : (path.encoded() ? choices.policy().start : 0);
  if (snapshot) {
    row->rings = snapshot->rings;
    for (std::size_t i = 0; i < row->recurrent.size(); ++i) row->recurrent[i].restore(snapshot->recurrent[i]);
  }
  row->trim();
  return Row(std::move(row));
}

// Puts the row's blocks along the tree.
void PrefixCache::Impl::hold(Wood& wood, const Row::Impl& row, std::span<const int> tokens) {
  PrefixNode* node = &wood.tree.root();
  std::vector<PrefixNode*> changed;
  const std::uint64_t losses = cold ? cold->losses() : 0;
  for (std::size_t at = 0; at < tokens.size(); at += kPositions) {
    const auto slice = tokens.subspan(at, std::min<std::size_t>(kPositions, tokens.size() - at));
    node = &wood.tree.put(*node, slice);
    node->used = ++clock;
    // On disk the way to a node leads over all before it, those without blocks too. What was lost there comes again.
    bool is_new = cold && (node->recorded != node->key || node->recorded_losses != losses);
    for (std::size_t g = 0; g < choices.groups.size(); ++g) {
      const auto& blocks = row.tables[g].blocks();
      const std::size_t b = at / kPositions;
      PrefixNode::Held& held = node->held[g];
      if (b >= blocks.size() || !blocks[b] || held.valid >= static_cast<int>(slice.size())) continue;
      held = {blocks[b], static_cast<int>(slice.size())};
      is_new = true;
    }
    const bool is_last = at + slice.size() == tokens.size();
    if (is_last && needs_snapshot(choices)) {
      PrefixSnapshot snapshot{row.rings, {}, row.encoded_at};
      for (const RecurrentState& state : row.recurrent) snapshot.recurrent.push_back(state.memory());
      is_new = node->snapshots.emplace(row.length, std::move(snapshot)).second || is_new;
    }
    if (is_new) changed.push_back(node);
  }
  if (!cold) return;
  // What a full queue does not take comes again with the next row along this way, and all behind it.
  bool is_taken = true;
  for (PrefixNode* each : changed) {
    is_taken = is_taken && cold->put(to_record(*each, choices, wood.encoded, wood.signature));
    each->recorded = is_taken ? each->key : ColdKey{};
    each->recorded_losses = losses;
  }
}

void PrefixCache::Impl::count_bytes() {
  counts.bytes = counts.snapshot_bytes = counts.nodes = 0;
  for (auto& [key, wood] : woods)
    wood.tree.for_nodes([&](PrefixNode& node) {
      counts.bytes += node.bytes();
      for (const auto& [position, snapshot] : node.snapshots) counts.snapshot_bytes += snapshot.bytes();
      ++counts.nodes;
    });
}

// The least recently used of the nodes that which(node) names; null: none.
template <typename Which>
PrefixNode* PrefixCache::Impl::oldest(Which&& which) {
  PrefixNode* found = nullptr;
  for (auto& [key, wood] : woods)
    wood.tree.for_nodes([&](PrefixNode& node) {
      if (which(node) && (!found || node.used < found->used)) found = &node;
    });
  return found;
}

// The least recently used nodes lose their recurrent states first.
void PrefixCache::Impl::drop_snapshots() {
  const std::size_t cap = options.snapshot_bytes ? options.snapshot_bytes : options.cap_bytes / 4;
  while (counts.snapshot_bytes > cap) {
    PrefixNode* const node = oldest([](const PrefixNode& each) { return !each.snapshots.empty(); });
    if (!node) return;
    node->snapshots.clear();
    count_bytes();
  }
}

void PrefixCache::Impl::keep_within_caps() {
  for (auto at = woods.begin(); at != woods.end();)
    at = at->second.tree.root().children.empty() ? woods.erase(at) : std::next(at);
  count_bytes();
  if (!choices.recurrent.empty()) drop_snapshots();
  while (counts.bytes > options.cap_bytes) {
    PrefixNode* const leaf = oldest([](const PrefixNode& each) { return each.children.empty(); });
    if (!leaf) return;
    counts.bytes -= leaf->bytes();
    PrefixTree::remove(*leaf);
    --counts.nodes;
    ++counts.evicted;
  }
}

PrefixCache::PrefixCache(const StateStore& store, PrefixCacheOptions options, ColdTier* cold)
    : impl_(std::make_unique<Impl>(
          Impl{*store.impl().choices, store.impl().choices, std::move(options), cold, {}, 0, {}})) {}

PrefixCache::~PrefixCache() = default;

std::optional<Row> PrefixCache::find(std::span<const int> tokens, const std::string& space) {
  Impl& impl = *impl_;
  // At least one token is left to compute.
  const auto known = tokens.first(tokens.empty() ? 0 : tokens.size() - 1);
  for (bool use_disk = true;;) {
    std::optional<Impl::Found> found = impl.longest(known, space, use_disk);
    if (!found) break;
    if (!impl.fetch(*found->wood, found->path, found->prefix)) {
      use_disk = false;
      continue;
    }
    // Read in whole, a prefix may prove to be covered less far than its records promised.
    if (found->path.longest_usable() != found->prefix) continue;
    Row row = impl.row_of(found->path, found->prefix);
    ++impl.counts.hits;
    impl.counts.hit_tokens += static_cast<std::uint64_t>(found->prefix);
    impl.keep_within_caps();
    return row;
  }
  ++impl.counts.misses;
  impl.keep_within_caps();
  return std::nullopt;
}

void PrefixCache::insert(const Row& row, std::span<const int> tokens, const std::string& space) {
  const Row::Impl& state = row.impl();
  state.check_idle("caching");
  GODWIT_CHECK(state.choices == impl_->shared, "a row of another state store");
  GODWIT_CHECK(static_cast<int>(tokens.size()) == state.length, "{} tokens for a row of {}", tokens.size(), state.length);
  // What an encoder wrote belongs to no prefix of tokens.
  if (tokens.empty() || impl_->options.cap_bytes == 0 || !impl_->choices.cross.empty()) return;
  impl_->hold(impl_->wood(space, state.encoded), state, tokens);
  impl_->keep_within_caps();
}

void PrefixCache::clear(bool disk_too) {
  impl_->woods.clear();
  if (disk_too && impl_->cold) impl_->cold->clear();
  impl_->count_bytes();
}

PrefixCacheStats PrefixCache::stats() const { return impl_->counts; }

}  // namespace godwit::cache
