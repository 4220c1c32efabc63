// Instruction set levels of the CPU kernels. Every level computes the same bits; they differ in speed only.
// Plain declarations, so that files built with ISA flags may include this header.
#pragma once

namespace godwit::kernels {

enum class Level : int {
  scalar,  // portable C++: the definition of every kernel
  avx2,    // x86-64 with AVX2, FMA and F16C
  avx512,  // x86-64 with AVX-512 F, BW, VL, DQ and VNNI
  neon,    // every AArch64
};

inline constexpr Level kLevels[] = {Level::scalar, Level::avx2, Level::avx512, Level::neon};

// "scalar", "avx2", "avx512", "neon".
const char* level_name(Level level);

// Whether this build holds the level and both the CPU and the operating system (which must save the wide
// registers) can run it. Asks the processor; nothing is cached.
bool is_runnable(Level level);

// The fastest runnable level.
Level best_level();

}  // namespace godwit::kernels
