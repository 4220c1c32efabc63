#include "ops/native_primitive.h"

#include "base/checked.h"
#include "base/mx_ops.h"

namespace godwit::ops {

NativePrimitive::NativePrimitive() : Primitive(mx::default_stream(mx::Device::cpu)) {}

void NativePrimitive::eval_cpu(const std::vector<mx::array>&, std::vector<mx::array>&) {
  fail(ErrorCode::internal, "native", "{} is run by our executor, not by MLX's evaluator", name());
}

void NativePrimitive::eval_gpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) {
  eval_cpu(inputs, outputs);
}

mx::array native_node(const mx::array& x, std::int64_t outputs, std::shared_ptr<NativePrimitive> primitive) {
  return mx::array(mx::Shape{x.shape(0), checked_cast<int>(outputs, "native outputs")}, mx::float32,
                   std::move(primitive), {x});
}

}  // namespace godwit::ops
