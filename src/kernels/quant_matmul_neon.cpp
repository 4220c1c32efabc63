#include "kernels/dots_neon-inl.h"
#include "kernels/quant_matmul-inl.h"

namespace godwit::kernels::neon {
Level quant_matmul(const QuantMatmulArgs& args) { return quant_matmul_body<NeonDots>(args); }
}  // namespace godwit::kernels::neon
