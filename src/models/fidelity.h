// What is promised about the numbers of a model in one arithmetic: how close to whom.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace godwit::models {

// L1: the oracle's bits by default. L2: the bits of an oracle with a method of its own. L3: no equal bits;
// the figures say how far off.
enum class Tier { l1, l2, l3 };
enum class Oracle { none, mlx_lm, mlx_whisper, mlx_vlm, mlx_optiq, transformers };
enum class Claim {
  bit_exact,  // equal bits on the same libmlx, device and shapes
  bounded,    // within the figures of the oracle
  measured,   // compared with our own reference arithmetic
};

struct Fidelity {
  Tier tier = Tier::l1;
  Oracle oracle = Oracle::mlx_lm;
  Claim claim = Claim::bit_exact;
  std::string figures = {};  // what was measured or is bounded; empty where bits are equal

  bool operator==(const Fidelity&) const = default;
};

// "L1", "mlx-lm", "bit-exact", ...
std::string_view name_of(Tier tier);
std::string_view name_of(Oracle oracle);
std::string_view name_of(Claim claim);
std::string text_of(const Fidelity& fidelity);  // "L1, mlx-lm, bit-exact"

// Why such a promise cannot be made, or nothing: a tuple of the three that does not exist, or figures that
// are missing.
std::optional<std::string> problem_of(const Fidelity& fidelity);

}  // namespace godwit::models
