// Writes the tensors of one random GGUF model.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "checkpoint/test_files.h"

namespace godwit::one_answer {

class GgufWriter {
 public:
  GgufWriter(checkpoint::GgufBytes& file, unsigned seed) : file_(file), random_(seed) {}

  // F32, within `spread` of `centre`. `shape` as GGUF has it, the shortest stride first.
  void numbers(const std::string& name, const std::vector<std::uint64_t>& shape, float centre, float spread) {
    std::uint64_t size = 1;
    for (const std::uint64_t extent : shape) size *= extent;
    std::string data;
    for (std::uint64_t i = 0; i < size; ++i)
      data += checkpoint::le(centre + spread * static_cast<float>(static_cast<int>(random_() % 9) - 4) / 4);
    file_.tensor(name, shape, kF32, data);
  }
  // Around one.
  void norm(const std::string& name, std::uint64_t size) { numbers(name + ".weight", {size}, 1.0f, 0.25f); }
  // Blocks of an f16 scale, 2^-9, and 32 signed bytes.
  void matrix(const std::string& name, std::uint64_t rows, std::uint64_t columns) { blocks(name, {columns, rows}); }
  void experts(const std::string& name, std::uint64_t count, std::uint64_t rows, std::uint64_t columns) {
    blocks(name, {columns, rows, count});
  }

 private:
  static constexpr std::uint32_t kF32 = 0, kQ8 = 8;

  void blocks(const std::string& name, const std::vector<std::uint64_t>& shape) {
    std::uint64_t size = 1;
    for (const std::uint64_t extent : shape) size *= extent;
    std::string data;
    for (std::uint64_t block = 0; block < size / 32; ++block) {
      data += checkpoint::le(std::uint16_t{0x1800});
      for (int i = 0; i < 32; ++i) data += static_cast<char>(static_cast<int>(random_() % 255) - 127);
    }
    file_.tensor(name + ".weight", shape, kQ8, data);
  }

  checkpoint::GgufBytes& file_;
  std::mt19937 random_;
};

}  // namespace godwit::one_answer
