// All that an engine can open: code, profiles and what it is able to do. A value; callers may bring their
// own.
#pragma once

#include "models/capability.h"
#include "models/profile_table.h"
#include "models/registry.h"

namespace godwit::models {

struct Catalogue {
  Registry registry;
  ProfileTable profiles;
  CapabilitySet capabilities;

  static Catalogue builtin();
  // The profiles of all its families, and the capabilities that they need.
  static Catalogue of(const Registry& registry);
};

// One profile for each loader of a family: "qwen3" for safetensors, "qwen3-gguf"; one more for each of its
// lesser promises, whose configs the former leaves out. None for further code of another family's graph.
std::vector<Profile> profiles_of(const Family& family);

}  // namespace godwit::models
