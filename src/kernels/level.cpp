#include "kernels/level.h"

#include <initializer_list>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace godwit::kernels {
namespace {

#if defined(__x86_64__)
struct Registers {
  unsigned a = 0, b = 0, c = 0, d = 0;
};

Registers cpuid(unsigned leaf) {
  Registers r;
  __get_cpuid_count(leaf, 0, &r.a, &r.b, &r.c, &r.d);  // leaves zeros where the processor lacks the leaf
  return r;
}

bool has(unsigned word, int bit) { return (word >> bit & 1) != 0; }

// XCR0: which register files the operating system saves on a task switch. xgetbv faults unless it says it
// uses XSAVE.
unsigned saved_state() {
  if (!has(cpuid(1).c, 27)) return 0;
  unsigned low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

bool cpu_has_avx2() {
  constexpr unsigned kXmmYmm = 0x6;
  const Registers one = cpuid(1);
  const bool fma = has(one.c, 12), avx = has(one.c, 28), f16c = has(one.c, 29);
  return fma && avx && f16c && has(cpuid(7).b, 5) && (saved_state() & kXmmYmm) == kXmmYmm;
}

bool cpu_has_avx512() {
  constexpr unsigned kMasksAndZmm = 0xe6;
  const Registers seven = cpuid(7);
  const bool f = has(seven.b, 16), dq = has(seven.b, 17), bw = has(seven.b, 30), vl = has(seven.b, 31);
  return cpu_has_avx2() && f && dq && bw && vl && has(seven.c, 11) &&
         (saved_state() & kMasksAndZmm) == kMasksAndZmm;
}
#else
bool cpu_has_avx2() { return false; }
bool cpu_has_avx512() { return false; }
#endif

#if defined(__aarch64__)
constexpr bool kHasNeon = true;  // part of the architecture: nothing to ask
#else
constexpr bool kHasNeon = false;
#endif

}  // namespace

const char* level_name(Level level) {
  switch (level) {
    case Level::scalar:
      return "scalar";
    case Level::avx2:
      return "avx2";
    case Level::avx512:
      return "avx512";
    case Level::neon:
      return "neon";
  }
  return "unknown";
}

bool is_runnable(Level level) {
  switch (level) {
    case Level::scalar:
      return true;
    case Level::avx2:
      return cpu_has_avx2();
    case Level::avx512:
      return cpu_has_avx512();
    case Level::neon:
      return kHasNeon;
  }
  return false;
}

Level best_level() {
  for (const Level level : {Level::avx512, Level::avx2, Level::neon})
    if (is_runnable(level)) return level;
  return Level::scalar;
}

}  // namespace godwit::kernels
