#include "cli/descriptors.h"

#include <sys/resource.h>

#include <algorithm>

namespace godwit::cli {

void allow_descriptors(std::size_t wanted, const Log& log) {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min<rlim_t>(wanted, limit.rlim_max);
  if (::setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur >= wanted) return;
  log.warning("{} open files may be wanted, for connections above all, and the system allows {} (ulimit -n)", wanted,
              limit.rlim_cur);
}

}  // namespace godwit::cli
