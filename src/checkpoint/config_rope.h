// Rotary settings of a config in either spelling: rope_theta + rope_scaling, or rope_parameters of newer
// files.
#pragma once

#include <optional>
#include <string>

#include "checkpoint/config.h"
#include "checkpoint/config_keys.h"
#include "checkpoint/dialect.h"

namespace godwit::checkpoint {

// Fills rope_* and partial_rotary_factor of `config`; `given` is the object as the file has it, without the defaults of the
// family. Both spellings are honoured; where the oracle reads no rope_parameters and the file has some that count,
// config.departure and a warning say so.
void read_rope(const ConfigKeys& keys, const Json& given, RopeParameters oracle, Config& config);

// The scaling that one object of rope parameters names; absent where its type is "default". `origin` names the object.
std::optional<RopeScaling> rope_scaling_of(const Json& parameters, const std::string& origin);

}  // namespace godwit::checkpoint
