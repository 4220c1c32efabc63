#include "kernels/lanes_neon-inl.h"
#include "kernels/table-inl.h"

namespace godwit::kernels::neon {
constinit const KernelTable kTable = make_table<NeonLanes>(quant_matmul);
}  // namespace godwit::kernels::neon
