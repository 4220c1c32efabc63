// The greedy choice with the oracle's bits. mlx-lm takes the argmax of logits - logsumexp(logits), computed
// in the logits' own dtype: in bf16 that subtraction makes ties which the logits alone do not have, and the
// first one wins.
#pragma once

#include "base/mx.h"

namespace godwit::decode {

struct OracleGreedy {
  mx::array token;       // u32 scalar
  mx::array normaliser;  // logsumexp as f32, scalar: not finite exactly when no token can be chosen
};

// `logits` [1, vocabulary] in the model's dtype. Graph nodes; nothing is evaluated.
OracleGreedy oracle_greedy(const mx::array& logits);

}  // namespace godwit::decode
