// hub_driver CACHE ENDPOINT REPO: one download in a process of its own, for tests that kill it or run two at
// once.
#include <cstdio>

#include "base/error.h"
#include "hub/download.h"

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  try {
    godwit::hub::HubOptions options;
    options.cache_root = argv[1];
    options.endpoint = argv[2];
    options.disk_reserve = 0;
    godwit::hub::initialise_http();
    const auto result = godwit::hub::get_repository({.repo = argv[3], .choice = {}}, options, {}, {}, {});
    std::printf("%llu\n", static_cast<unsigned long long>(result.fetched));
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
