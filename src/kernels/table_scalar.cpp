#include "kernels/lanes_scalar-inl.h"
#include "kernels/table-inl.h"

namespace godwit::kernels::scalar {
constinit const KernelTable kTable = make_table<ScalarLanes>(quant_matmul);
}  // namespace godwit::kernels::scalar
