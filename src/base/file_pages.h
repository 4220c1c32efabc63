// Memory of mapped files that is not needed any more.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace godwit {

// Gives the whole pages of `mapped`, a part of a FileMap, back to the system; a later read fetches them from
// the file again. A hint: where the system does not take it, nothing happens.
void forget_pages(std::span<const std::byte> mapped);

// read(piece) for one piece of `mapped` after the other, each of whole units of `unit` bytes (the last one may be cut),
// whose pages are then given back: no more than a few MiB of the file are in memory because of this.
template <typename Read>
void read_once(std::span<const std::byte> mapped, std::size_t unit, Read&& read) {
  constexpr std::size_t kPiece = std::size_t{4} << 20;
  const std::size_t step = std::max<std::size_t>(kPiece / unit, 1) * unit;
  while (!mapped.empty()) {
    const auto piece = mapped.first(std::min(mapped.size(), step));
    read(piece);
    forget_pages(piece);
    mapped = mapped.subspan(piece.size());
  }
}

}  // namespace godwit
