// What the queries of one span see of the columns they are given, and in which form mlx-lm would say it
// (`reference` mode).
#pragma once

#include <vector>

#include "base/mx.h"
#include "cache/state.h"

namespace godwit::cache {

// The queries stand behind `context` of the columns they are given; columns are in temporal order wherever a
// mask is needed. `window` 0: full.
struct Visibility {
  SpanKind kind = SpanKind::causal;
  int queries = 0;
  int context = 0;  // columns before the first query's own
  int window = 0;
  std::vector<Together> together = {};  // images in a causal span
};

enum class MaskForm { none, causal, array };

// One query sees all columns: the ring has dropped what lies outside the window. The array is made only where
// the words "none" and "causal" do not say it, because kernels differ by form.
MaskForm mask_form(const Visibility& visibility);

// Bool [queries, context + queries]; true where query i sees column j. The members of an image see each other
// wherever the window ends.
mx::array visibility_mask(const Visibility& visibility);

// Bool [queries, columns]: true where `selected` [queries, k] int32 names the column; -1 and columns that are not there
// name none.
mx::array selection_mask(const mx::array& selected, int columns);

// mx.finfo(dtype).min, which mlx-lm gives to the scores of hidden columns.
mx::array lowest_score(mx::Dtype dtype);

}  // namespace godwit::cache
