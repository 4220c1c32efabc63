// Composed forms of the larger branches. x [tokens, hidden]. Private to ops.
#pragma once

#include "ops/composed.h"
#include "ops/delta_layer.h"
#include "ops/kv_layer.h"
#include "ops/native_experts.h"
#include "ops/native_gated_delta.h"

namespace godwit::ops {

// Error{unsupported} where a query sees what earlier steps stored, or keys and values are kept in another form than
// f32: their gradients would have to pass through the store.
mx::array composed_attention(const mx::array& x, const AttentionPlan& plan, const KvLayer& layer, Constants& constants);
// Every expert over every row, with a share of zero where it was not chosen: the rule of a choice that does not move.
mx::array composed_experts(const mx::array& x, const SparseMlpPlan& plan, Constants& constants);
// Error{unsupported} where a row begins with a memory.
mx::array composed_gated_delta(const mx::array& x, const GatedDeltaPlan& plan, const DeltaLayer& layer,
                               Constants& constants);

}  // namespace godwit::ops
