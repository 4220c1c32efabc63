// Memory of mapped files that is not needed any more.
#pragma once

#include <cstddef>
#include <span>

namespace godwit {

// Gives the whole pages of `mapped`, a part of a FileMap, back to the system; a later read fetches them from
// the file again. A hint: where the system does not take it, nothing happens.
void forget_pages(std::span<const std::byte> mapped);

}  // namespace godwit
