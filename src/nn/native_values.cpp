#include "nn/native_values.h"

#include "base/mx_ops.h"

namespace godwit::nn {

std::vector<float> native_values(const mx::array& x) {
  mx::array wide = mx::contiguous(mx::astype(x, mx::float32));
  wide.eval();
  return {wide.data<float>(), wide.data<float>() + wide.size()};
}

}  // namespace godwit::nn
