// The kernels of one level, as a value that is handed down: no global says which level runs. Every function
// returns the level of the body that ran, so that a caller or a test can tell. Contracts are in the headers
// of the arguments.
#pragma once

#include "kernels/activations.h"
#include "kernels/attention.h"
#include "kernels/gated.h"
#include "kernels/gated_delta.h"
#include "kernels/kv_decode.h"
#include "kernels/level.h"
#include "kernels/quant_matmul.h"
#include "kernels/restore_values.h"
#include "kernels/rms_norm.h"
#include "kernels/rope.h"
#include "kernels/routing.h"
#include "kernels/vector_ops.h"

namespace godwit::kernels {

template <class Args>
using Kernel = Level (*)(const Args&);

struct KernelTable {
  Level level;
  Kernel<RmsNormArgs> rms_norm;
  Kernel<RopeArgs> rope;
  Kernel<GatedArgs> gated;
  Kernel<AddArgs> add;
  Kernel<ArgmaxArgs> argmax;
  Kernel<QuantizeRowsArgs> quantize_rows;
  Kernel<QuantMatmulArgs> quant_matmul;
  Kernel<AttentionArgs> attention;
  Kernel<AttentionMergeArgs> attention_merge;
  Kernel<DecodeKvArgs> decode_kv;
  Kernel<RestoreValuesArgs> restore_values;
  Kernel<ShortConvArgs> short_conv;
  Kernel<UnitLengthArgs> unit_length;
  Kernel<DeltaGatesArgs> delta_gates;
  Kernel<DeltaRuleArgs> delta_rule;
  Kernel<RowDotsArgs> row_dots;
  Kernel<SoftmaxArgs> softmax;
  Kernel<SigmoidArgs> sigmoid;
  Kernel<WeightedSumArgs> weighted_sum;
};

namespace scalar {
extern const KernelTable kTable;
}
namespace avx2 {
extern const KernelTable kTable;
}
namespace avx512 {
extern const KernelTable kTable;
}
namespace neon {
extern const KernelTable kTable;
}

}  // namespace godwit::kernels
