// What the oracle rendered in this test run.
#pragma once

#include <fstream>

#include "base/json.h"

namespace godwit::text {

inline const Json& expected() {
  static const Json json = [] {
    std::ifstream file(GODWIT_EXPECTED);
    return Json::parse(file);
  }();
  return json;
}

}  // namespace godwit::text
