#include "decode/logprobs.h"

#include <algorithm>

#include "decode/candidates.h"
#include "decode/portable_math.h"

namespace godwit::decode {

RowLogprobs row_logprobs(std::span<const float> logits, int chosen, int top_count) {
  Candidates candidates(std::vector<double>(logits.begin(), logits.end()));
  const double largest = candidates.best().logit;
  double sum = 0;
  for (const Candidate& item : candidates.items()) sum += portable_exp(item.logit - largest);
  const double log_sum = largest + portable_log(sum);

  RowLogprobs row;
  row.chosen = {chosen, static_cast<double>(logits[static_cast<std::size_t>(chosen)]) - log_sum};
  if (top_count < 1) return row;
  std::vector<Candidate> sorted(std::min(candidates.items().size(), static_cast<std::size_t>(top_count)));
  std::partial_sort_copy(candidates.items().begin(), candidates.items().end(), sorted.begin(), sorted.end(),
                         comes_before);
  for (const Candidate& item : sorted) row.top.push_back({item.id, item.logit - log_sum});
  return row;
}

}  // namespace godwit::decode
