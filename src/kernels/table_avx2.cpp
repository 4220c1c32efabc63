#include "kernels/lanes_avx2-inl.h"
#include "kernels/table-inl.h"

namespace godwit::kernels::avx2 {
constinit const KernelTable kTable = make_table<Avx2Lanes>(quant_matmul);
}  // namespace godwit::kernels::avx2
