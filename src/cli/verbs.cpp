#include "cli/verbs.h"

#include <vector>

namespace godwit::cli {

// Each verb is declared here and listed below, in the order of --help.

std::span<const AddVerb> verbs() {
  static const std::vector<AddVerb> table = {};
  return table;
}

}  // namespace godwit::cli
