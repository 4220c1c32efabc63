// What names the structure of a model: everything in its config that can change the graph or a constant in
// it.
//
// Counted are all keys of the decoder's own object (Config::raw, with the family's defaults) and the map of
// quantized matrices. A key that nobody here knows counts, too. Not counted are keys that no graph can read:
// ids of end tokens, the saver's dtype and versions, paths, training settings; generation_config.json never
// counts.
#pragma once

#include <string>

#include "checkpoint/config.h"
#include "checkpoint/fingerprint.h"

namespace godwit::checkpoint {

// The canonical JSON (base/canonical_json.h) of {"config": ..., "model_type": ..., "quantization": ...,
// "source": "gguf" or "json"}; null members are left out, at every depth.
std::string canonical_config(const Config& config);

// SHA-256 over "godwit-config-1\n" and the canonical config. The number rises with the rules above.
Fingerprint config_fingerprint(const Config& config);

}  // namespace godwit::checkpoint
