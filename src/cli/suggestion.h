// "Did you mean": the known word nearest to a mistyped one.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace godwit::cli {

// The candidate with the fewest edits (insert, delete, replace, swap of neighbours), the first of equals;
// nullopt when even that one needs more than a third of the word's letters changed (at least one edit is
// always allowed).
std::optional<std::string> nearest_word(std::string_view word, std::span<const std::string> candidates);

}  // namespace godwit::cli
