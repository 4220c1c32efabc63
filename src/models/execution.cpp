#include "models/execution.h"

#include <array>
#include <cstddef>

namespace godwit::models {

std::string_view name_of(Loader loader) {
  constexpr std::array<std::string_view, 3> kNames = {"safetensors", "gguf", "streamed"};
  return kNames.at(static_cast<std::size_t>(loader));
}

std::string_view name_of(Loop loop) {
  constexpr std::array<std::string_view, 4> kNames = {"autoregressive", "diffusion", "encoder-decoder",
                                                      "encoder"};
  return kNames.at(static_cast<std::size_t>(loop));
}

std::string_view name_of(Specialization specialization) {
  constexpr std::array<std::string_view, 4> kNames = {"generic", "dedicated", "generated", "artifact"};
  return kNames.at(static_cast<std::size_t>(specialization));
}

}  // namespace godwit::models
