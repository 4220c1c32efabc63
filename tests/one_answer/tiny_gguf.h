// Random GGUF files that native mode serves: Q8_0 matrices, heads of 64 elements.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/model_bundle.h"

namespace godwit::one_answer {

inline constexpr int kVocabulary = 96;
inline constexpr int kWindow = 40;  // of every second layer of the sliding model

// Full attention in two layers (llama) or, with `slides`, four layers of which the first and the third slide (gemma3).
// Another `seed` is another model of the same shapes.
void write_model(const std::filesystem::path& file, bool slides, unsigned seed = 1);

std::unique_ptr<models::ModelBundle> open_model(const std::filesystem::path& file, NumericMode mode,
                                                std::optional<kernels::ActivationForm> activations = {},
                                                models::PlanUse plan = models::PlanUse::automatic);

std::vector<int> random_tokens(std::size_t count, unsigned seed);

// A folder of one test of this process, removed at its end.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace godwit::one_answer
