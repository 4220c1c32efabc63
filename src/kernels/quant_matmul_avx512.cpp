#include "kernels/dots_avx512-inl.h"
#include "kernels/quant_matmul-inl.h"

namespace godwit::kernels::avx512 {
Level quant_matmul(const QuantMatmulArgs& args) { return quant_matmul_body<Avx512Dots>(args); }
}  // namespace godwit::kernels::avx512
