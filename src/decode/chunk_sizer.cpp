#include "decode/chunk_sizer.h"

#include <algorithm>
#include <cstddef>

#include "cache/chunks.h"

namespace godwit::decode {
namespace {

// The newer a step, the more it says; one slow step among many says little.
void blend(double& known, double seen) { known = known == 0 ? seen : 0.8 * known + 0.2 * std::min(seen, 4 * known); }

}  // namespace

void ChunkSizer::saw(int makers, int tokens, double seconds) {
  if (tokens == 0) {
    alone_.resize(std::max(alone_.size(), static_cast<std::size_t>(makers) + 1));
    return blend(alone_[static_cast<std::size_t>(makers)], seconds);
  }
  const double added = (seconds - (makers == 0 ? 0 : seconds_alone(makers))) / tokens;
  if (added > 0) blend(per_token_, added);
}

// Of that number of rows, or of the nearest smaller one: more rows take longer.
double ChunkSizer::seconds_alone(int makers) const {
  for (auto at = std::min(static_cast<std::size_t>(makers) + 1, alone_.size()); at-- > 1;)
    if (alone_[at] > 0) return alone_[at];
  return 0;
}

int ChunkSizer::tokens(int makers, int position) const {
  const double alone = seconds_alone(makers);
  if (alone == 0 || per_token_ == 0) return kUnmeasured;
  const double most = std::min<double>(kShare * alone / per_token_, cache::kNativeChunk);
  const int tokens = std::max(static_cast<int>(most), least_at(position));
  const int beyond_tiles = (makers + tokens) % kTileRows;
  return tokens > kTileRows ? tokens - beyond_tiles : tokens;
}

}  // namespace godwit::decode
