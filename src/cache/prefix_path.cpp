#include "cache/prefix_path.h"

#include <algorithm>
#include <utility>

namespace godwit::cache {
namespace {

int valid_of(const PrefixPath::Part& part, std::size_t group) {
  return part.node ? part.node->held[group].valid : part.stored->valid[group];
}

bool has_snapshot(const PrefixPath::Part& part, int position) {
  if (part.node) return part.node->snapshots.contains(position);
  return std::ranges::find(part.stored->snapshots, position) != part.stored->snapshots.end();
}

}  // namespace

bool needs_snapshot(const StoreChoices& choices) {
  if (!choices.recurrent.empty()) return true;
  if (choices.is_native()) return false;
  const auto slides = [](const LayerGroup& group) { return group.window() > 0; };
  return choices.is_encodable || std::ranges::any_of(choices.groups, slides);
}

void PrefixPath::add(PrefixNode& node, int matched) { parts_.push_back({node.begin, matched, &node, {}}); }

void PrefixPath::add(StoredNode stored, int begin) {
  const int tokens = static_cast<int>(stored.head.tokens.size());
  parts_.push_back({begin, tokens, nullptr, std::move(stored)});
}

void PrefixPath::cut(int begin) {
  std::erase_if(parts_, [&](const Part& part) { return part.begin >= begin; });
}

int PrefixPath::full_end() const {
  if (parts_.empty()) return 0;
  const Part& last = parts_.back();
  return last.matched == kPositions ? last.begin + kPositions : last.begin;
}

std::optional<ColdKey> PrefixPath::full_key() const {
  const PrefixNode* node = nullptr;
  for (const Part& part : parts_)
    if (part.matched == kPositions) node = part.node;
  return node ? std::optional(node->key) : std::nullopt;
}

int PrefixPath::first_needed(std::size_t group, int prefix) const {
  const int window = choices_->groups[group].window();
  return window == 0 ? 0 : std::max(0, prefix - window);
}

const PrefixSnapshot* PrefixPath::snapshot_at(int prefix) const {
  for (const Part& part : parts_) {
    if (!part.node) continue;
    const auto found = part.node->snapshots.find(prefix);
    if (found != part.node->snapshots.end() && prefix <= part.begin + part.matched) return &found->second;
  }
  return nullptr;
}

bool PrefixPath::covers(int prefix) const {
  const int start = choices_->policy().start;
  if (choices_->is_native() && choices_->is_encodable && (encoded_ ? prefix < start : prefix > start)) return false;
  for (std::size_t g = 0; g < choices_->groups.size(); ++g)
    for (const Part& part : parts_) {
      if (part.begin >= prefix) break;
      if (part.begin + kPositions <= first_needed(g, prefix)) continue;
      if (valid_of(part, g) < std::min(prefix - part.begin, kPositions)) return false;
    }
  return true;
}

std::vector<int> PrefixPath::candidates() const {
  std::vector<int> found;
  for (auto part = parts_.rbegin(); part != parts_.rend(); ++part)
    for (int position = part->begin + part->matched; position > part->begin; --position)
      if (!needs_snapshot(*choices_) ? position == part->begin + part->matched : has_snapshot(*part, position))
        found.push_back(position);
  return found;
}

int PrefixPath::longest_usable() const {
  for (const int prefix : candidates())
    if (covers(prefix)) return prefix;
  return 0;
}

}  // namespace godwit::cache
