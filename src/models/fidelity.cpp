#include "models/fidelity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace godwit::models {
namespace {

struct Tuple {
  Tier tier;
  Oracle oracle;
  Claim claim;
};
constexpr std::array<Tuple, 8> kLegal = {{
    {Tier::l1, Oracle::mlx_lm, Claim::bit_exact},
    {Tier::l1, Oracle::mlx_whisper, Claim::bit_exact},
    {Tier::l1, Oracle::mlx_vlm, Claim::bit_exact},
    {Tier::l2, Oracle::mlx_optiq, Claim::bit_exact},
    {Tier::l3, Oracle::mlx_lm, Claim::bounded},
    {Tier::l3, Oracle::mlx_vlm, Claim::bounded},
    {Tier::l3, Oracle::transformers, Claim::bounded},
    {Tier::l3, Oracle::none, Claim::measured},
}};

}  // namespace

std::string_view name_of(Tier tier) {
  constexpr std::array<std::string_view, 3> kNames = {"L1", "L2", "L3"};
  return kNames.at(static_cast<std::size_t>(tier));
}

std::string_view name_of(Oracle oracle) {
  constexpr std::array<std::string_view, 6> kNames = {"none",    "mlx-lm",    "mlx-whisper",
                                                      "mlx-vlm", "mlx-optiq", "transformers"};
  return kNames.at(static_cast<std::size_t>(oracle));
}

std::string_view name_of(Claim claim) {
  constexpr std::array<std::string_view, 3> kNames = {"bit-exact", "bounded", "measured"};
  return kNames.at(static_cast<std::size_t>(claim));
}

std::string text_of(const Fidelity& fidelity) {
  return fmt::format("{}, {}, {}", name_of(fidelity.tier), name_of(fidelity.oracle), name_of(fidelity.claim));
}

std::optional<std::string> problem_of(const Fidelity& fidelity) {
  const auto is_same = [&](const Tuple& tuple) {
    return tuple.tier == fidelity.tier && tuple.oracle == fidelity.oracle && tuple.claim == fidelity.claim;
  };
  if (std::ranges::none_of(kLegal, is_same))
    return fmt::format("({}) is no promise that can be made", text_of(fidelity));
  if (fidelity.claim != Claim::bit_exact && fidelity.figures.empty())
    return fmt::format("({}) needs its figures", text_of(fidelity));
  return std::nullopt;
}

}  // namespace godwit::models
