#include "kernels/dots_avx2-inl.h"
#include "kernels/quant_matmul-inl.h"

namespace godwit::kernels::avx2 {
Level quant_matmul(const QuantMatmulArgs& args) { return quant_matmul_body<Avx2Dots>(args); }
}  // namespace godwit::kernels::avx2
