// Runs a property over both modes and some codecs and windows.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "state/world.h"

namespace godwit::cache::state_test {

inline constexpr NumericMode kModes[] = {NumericMode::native, NumericMode::reference};
inline const Pair kSome[] = {
    {"dense:f32", 0}, {"dense:bf16", 40}, {"affine:4:32", 0}, {"affine:8:64", 40}, {"turbo:8:3", 0}};

// Runs the body over modes, codecs and starts; what it throws is a failure that says where.
template <typename Body>
void over_all(Layers layers, std::initializer_list<int> starts, Body&& body) {
  for (const NumericMode mode : kModes)
    for (const Pair& pair : kSome)
      for (const int start : starts) {
        World world(make_setup(mode, pair, layers, start));
        try {
          body(world);
          world.check_rows();
          world.check_fresh_rows();
          world.finish();
        } catch (const std::exception& e) {
          ADD_FAILURE() << make_setup(mode, pair, layers, start).to_string() << "\n" << e.what();
        }
      }
}

// The longest span that row r takes, up to `tokens`.
inline void feed(World& world, int r, int tokens, SpanKind kind = SpanKind::causal) {
  while (tokens > 0) {
    const int some = std::min(tokens, world.longest(r, kind));
    world.append(r, some, kind);
    tokens -= some;
  }
}

}  // namespace godwit::cache::state_test
