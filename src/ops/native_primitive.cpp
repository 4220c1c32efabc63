#include "ops/native_primitive.h"

#include <algorithm>

#include "base/checked.h"
#include "base/error.h"
#include "base/mx_ops.h"
#include "ops/composed.h"

namespace godwit::ops {
namespace {

// Elements of four bytes in the order of their indices; `copy` holds them where x has another order.
const void* in_order(const mx::array& x, std::vector<std::uint32_t>& copy) {
  if (x.flags().row_contiguous) return x.data<char>();
  const std::int64_t columns = x.ndim() == 2 ? x.shape(1) : 1, column_stride = x.ndim() == 2 ? x.strides(1) : 0;
  copy.reserve(x.size());
  const auto* const data = reinterpret_cast<const std::uint32_t*>(x.data<char>());
  for (std::int64_t row = 0; row < x.shape(0); ++row)
    for (std::int64_t column = 0; column < columns; ++column)
      copy.push_back(data[row * x.strides(0) + column * column_stride]);
  return copy.data();
}

}  // namespace

NativePrimitive::NativePrimitive() : Primitive(mx::default_stream(mx::Device::cpu)) {}

void NativePrimitive::bind(NativeRuntime& runtime, const StepLayers& layers) {
  runtime_ = &runtime;
  layers_ = layers;
}

// Not as a task of the stream's thread: the runtime belongs to the thread that evaluates, whose executor may share it.
void NativePrimitive::eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) {
  if (runtime_ == nullptr)
    fail(ErrorCode::internal, "native", "{} is run by our executor, or by MLX's evaluator once it is bound to a runtime", name());
  mx::synchronize(stream());  // the tasks that make the input
  std::vector<std::uint32_t> copy;
  mx::array& out = outputs[0];
  out.set_data(mx::allocator::malloc(out.nbytes()));
  runtime_->scratch.reset();
  run({in_order(inputs[0], copy), out.data<float>(), out.shape(0), *runtime_, layers_});
}

void NativePrimitive::eval_gpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) {
  eval_cpu(inputs, outputs);
}

std::vector<mx::array> NativePrimitive::composed_of(const std::vector<mx::array>& inputs) const {
  Constants constants;
  return {composed(inputs[0], constants, layers_)};
}

void NativePrimitive::check_differentiable(const mx::array& x) const {
  if (!mx::issubdtype(x.dtype(), mx::floating))
    fail(ErrorCode::unsupported, "gradient", "{} has none with regard to tokens", name());
}

std::vector<mx::array> NativePrimitive::vjp(const std::vector<mx::array>& primals, const std::vector<mx::array>& cotangents,
                                            const std::vector<int>&, const std::vector<mx::array>&) {
  check_differentiable(primals[0]);
  return mx::vjp([this](const std::vector<mx::array>& x) { return composed_of(x); }, primals, cotangents).second;
}

std::vector<mx::array> NativePrimitive::jvp(const std::vector<mx::array>& primals, const std::vector<mx::array>& tangents,
                                            const std::vector<int>&) {
  check_differentiable(primals[0]);
  return mx::jvp([this](const std::vector<mx::array>& x) { return composed_of(x); }, primals, tangents).second;
}

mx::array native_node(const mx::array& x, std::int64_t outputs, std::shared_ptr<NativePrimitive> primitive) {
  GODWIT_CHECK(x.dtype() == (x.ndim() == 1 ? mx::int32 : mx::float32), "{} over another dtype", primitive->name());
  return mx::array(mx::Shape{x.shape(0), checked_cast<int>(outputs, "native outputs")}, mx::float32,
                   std::move(primitive), {x});
}

}  // namespace godwit::ops
