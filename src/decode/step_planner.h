// What one step is made of: a token of every row that makes some, and a bounded piece of the prompts of those that join.
#pragma once

#include <vector>

#include "decode/chunk_sizer.h"
#include "decode/engine_options.h"
#include "decode/prefix_sharing.h"

namespace godwit::decode {

struct PlannedSpan {
  ActiveRow* row;
  int span;
};

struct PlannedStep {
  std::vector<PlannedSpan> spans;  // the rows of a store one after another
  int makers = 0;                  // rows that feed one token and get one
  int prompt_tokens = 0;           // of the others

  bool empty() const { return spans.empty(); }
};

class StepPlanner {
 public:
  StepPlanner(NumericMode mode, const EngineOptions& options)
      : is_native_(mode == NumericMode::native), prefill_tokens_(options.prefill_tokens) {}

  // A token that a prompt waits counts as so many fewer tokens that it has left.
  static constexpr int kAgeing = 4;

  // The rows that have begun, wait for no other row and whose readers keep up. Of prompts by priority, then the shortest
  // rest first, and each rest counts the less the more tokens of others were computed meanwhile: a prompt of n tokens
  // waits for at most n / kAgeing of later ones. `reference` takes one chunk of one prompt.
  PlannedStep plan(const Rows& rows, const PrefixSharing& sharing) const;
  void saw(const PlannedStep& step, double seconds);

 private:
  int prompt_tokens_beside(int makers, int position) const;
  void add_prompts(PlannedStep& step, const Rows& rows, std::vector<ActiveRow*> joiners,
                   const PrefixSharing& sharing) const;

  bool is_native_;
  std::optional<int> prefill_tokens_;
  ChunkSizer sizer_;
};

}  // namespace godwit::decode
