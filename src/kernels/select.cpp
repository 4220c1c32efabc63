#include "kernels/select.h"

#include "base/error.h"

namespace godwit::kernels {

const KernelTable& kernels_for(Level level) {
  if (!is_runnable(level))
    fail(ErrorCode::unsupported, "kernels", "level {} does not run on this machine (best: {})",
         level_name(level), level_name(best_level()));
#if defined(__x86_64__)
  if (level == Level::avx512) return avx512::kTable;
  if (level == Level::avx2) return avx2::kTable;
#elif defined(__aarch64__)
  if (level == Level::neon) return neon::kTable;
#endif
  return scalar::kTable;
}

Level level_from_name(std::string_view name) {
  for (const Level level : kLevels)
    if (name == level_name(level)) return level;
  fail(ErrorCode::invalid_argument, "kernels", "unknown level '{}': use scalar, avx2, avx512 or neon", name);
}

std::vector<Level> runnable_levels() {
  std::vector<Level> levels;
  for (const Level level : kLevels)
    if (is_runnable(level)) levels.push_back(level);
  return levels;
}

}  // namespace godwit::kernels
