#include "decode/oracle_greedy.h"

#include "base/mx_ops.h"

namespace godwit::decode {

OracleGreedy oracle_greedy(const mx::array& logits) {
  const mx::array normaliser = mx::logsumexp(logits, /*keepdims=*/true);
  const mx::array token = mx::argmax(mx::subtract(logits, normaliser), /*axis=*/-1);
  return {mx::reshape(token, {}), mx::reshape(mx::astype(normaliser, mx::float32), {})};
}

}  // namespace godwit::decode
