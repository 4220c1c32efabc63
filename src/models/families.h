// The families of this build, one constant per family file.
#pragma once

#include "models/family.h"

namespace godwit::models {

#define FAMILY(name) extern const Family name;
#include "models/families.inc"
#undef FAMILY

}  // namespace godwit::models
