// Which experts a token runs, and with what weight. Data, not code, so that one sparse layer serves every
// family whose router is a linear map and a softmax.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/mx.h"
#include "checkpoint/weight_scope.h"
#include "nn/linear.h"
#include "ops/expert_router.h"

namespace godwit::nn {

struct Routing {
  enum class Softmax {
    over_all,     // of every expert's score, before the choice: Qwen, OLMoE
    over_chosen,  // of the chosen ones' scores, after it: Mixtral, Gemma 4
  };
  // The order of the chosen ones decides the order of a sum, hence bits: no sort replaces these.
  enum class Choice {
    last,           // the last k columns of argpartition(scores, kth = -k)
    first_negated,  // the first k columns of argpartition(-scores, kth = k - 1)
  };
  int experts = 0;
  int chosen = 0;  // for each token
  Softmax softmax = Softmax::over_all;
  bool is_precise = true;        // the softmax in f32 whatever the dtype of the scores
  bool is_renormalized = false;  // weights divided by their sum
  Choice choice = Choice::last;
};

struct Routed {
  mx::array experts;  // u32 [tokens, chosen]
  mx::array weights;  // [tokens, chosen], in the dtype of the scores
};

// scores [tokens, experts], the router's raw output.
Routed routed(const Routing& routing, const mx::array& scores);

// The weighted sum over the experts: y [tokens, chosen, hidden] -> [tokens, hidden], in the dtype that y and
// the weights promote to.
mx::array weighted_sum(const mx::array& y, const mx::array& weights);

class Router {
 public:
  struct Options {
    int hidden = 0;
    Routing routing;
    std::string projection = "gate";
    bool has_bias = false;
    bool has_expert_scale = false;  // weights times scope.per_expert_scale of the chosen: Gemma 4
  };
  // Reads scope.<projection>, in native mode as f32 values. Error{invalid_argument} for a choice of more experts than
  // there are.
  Router(const checkpoint::WeightScope& scope, const Options& options);

  // x [tokens, hidden], normed already where a family does so.
  Routed operator()(const mx::array& x) const;
  bool is_native() const { return !projection_; }
  // Error{unsupported} naming what our router lacks.
  ops::RouterPlan plan() const;

 private:
  Routing routing_;
  bool has_bias_;
  std::optional<Linear> projection_;
  std::vector<float> native_;  // [experts, hidden] in its place
  std::optional<mx::array> expert_scale_;
};

}  // namespace godwit::nn
