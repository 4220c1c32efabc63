// Rotary settings of a config in either spelling: rope_theta + rope_scaling, or rope_parameters of newer
// files.
#pragma once

#include "checkpoint/config.h"
#include "checkpoint/config_keys.h"

namespace godwit::checkpoint {

// Fills rope_* and partial_rotary_factor of `config`. Adds a warning where mlx-lm would ignore a key.
void read_rope(const ConfigKeys& keys, Config& config);

}  // namespace godwit::checkpoint
