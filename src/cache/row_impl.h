// What a row is made of. Private to cache.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cache/block_table.h"
#include "cache/cross_memory.h"
#include "cache/recurrent_state.h"
#include "cache/ring_shadow.h"
#include "cache/store_choices.h"

namespace godwit::cache {

struct Round::Impl {
  Row::Impl* row;  // null once the row is gone
  int start;       // the row's length at begin
  std::vector<std::optional<RingShadow>> rings;
};

struct Row::Impl {
  explicit Impl(std::shared_ptr<const StoreChoices> choices);
  ~Impl();
  Impl(const Impl& other);  // shares every block; outside rounds and Steps
  Impl& operator=(const Impl&) = delete;

  std::shared_ptr<const StoreChoices> choices;
  std::vector<BlockTable> tables;                // by group
  std::vector<std::optional<RingShadow>> rings;  // by group: sliding ones, `reference` only
  std::vector<RecurrentState> recurrent;         // by recurrent layer
  std::vector<CrossMemory> cross;                // by cross layer
  int length = 0;
  bool encoded = false;  // has turned to the codecs of its policy; never with a dense policy
  int encoded_at = 0;    // length when it did
  bool in_step = false;  // planned, not yet published or dropped
  Round::Impl* round = nullptr;

  // Whether a row without tokens is in its codec.
  static bool starts_encoded(const StoreChoices& choices);
  // The oldest position from which on group g holds everything.
  int first_kept(std::size_t group) const;
  // Drops the blocks that neither the row's tokens nor its next ones need; inside a round also not those that going
  // back needs.
  void trim() noexcept;
  // A round may not begin, and nobody may cut the row, while it is in a Step or a round.
  void check_idle(const char* action) const;
};

}  // namespace godwit::cache
