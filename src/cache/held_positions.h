// The part of a block that belongs to some tokens, and nothing else of it. Private to cache.
#pragma once

#include "cache/store_choices.h"

namespace godwit::cache {

// Bytes that hold the first `positions` positions of every plane of `group` as `block` does, and zeros everywhere else:
// what another row left behind them, and memory that nobody has written, stay out. Where nothing is to be left out it is
// `block` itself, whose frozen positions nobody writes any more. `encoded`: the form that the block is in.
BlockRef held_positions(const BlockRef& block, int positions, const LayerGroup& group, bool encoded, bool is_native,
                        BlockPool& pool);

}  // namespace godwit::cache
