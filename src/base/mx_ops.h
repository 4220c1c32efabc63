// The MLX operations that graphs are built from. Heavy (about a second to compile): include it in .cpp files
// only.
#pragma once

#include <mlx/fast.h>
#include <mlx/ops.h>
#include <mlx/transforms.h>

#include "base/mx.h"

namespace godwit {

// A scalar in x's dtype. `x * 2.0f` would promote bf16 to f32: the single most common cause of "almost equal"
// bits.
inline mx::array scalar_like(double value, const mx::array& x) { return mx::array(value, x.dtype()); }

}  // namespace godwit
