// What makes two opened models the same as far as cached state goes, in a form that outlives the process.
#pragma once

#include <filesystem>
#include <string>

#include "base/log.h"
#include "models/model_bundle.h"

namespace godwit::decode {

// Raise it with any change after which the same weights and tokens leave other bytes in a KV block or a recurrent
// state: a kernel that rounds elsewhere, another layout of a block, another way to read a format.
inline constexpr int kArithmeticVersion = 2;

// Names the content of the weight files and the config, the arithmetic and, in `reference`, what its bits hang on: MLX
// and the processor. Not whether steps run by a plan, nor threads nor level: they change no bit. Hashes are remembered in `memo_folder`. Throws Error{io, not_found}.
std::string model_identity(const models::ModelBundle& bundle, const std::filesystem::path& memo_folder,
                           const Log& log);

}  // namespace godwit::decode
