// MLX's array type under the short name that the whole code uses. Files that build graphs include
// base/mx_ops.h too.
#pragma once

#include <mlx/array.h>

namespace godwit {
namespace mx = mlx::core;
}
