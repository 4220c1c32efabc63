#include "kernels/lanes_avx512-inl.h"
#include "kernels/table-inl.h"

namespace godwit::kernels::avx512 {
constinit const KernelTable kTable = make_table<Avx512Lanes>(quant_matmul);
}  // namespace godwit::kernels::avx512
