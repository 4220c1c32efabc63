#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "ops/composed.h"
#include "ops/native_branch.h"
#include "ops/residual.h"

namespace godwit::ops {
namespace {

class NativeMlp final : public NativePrimitive {
 public:
  explicit NativeMlp(std::shared_ptr<const MlpPlan> plan) : plan_(std::move(plan)) {}
  const char* name() const override { return "NativeMlp"; }
  const void* constants() const override { return plan_.get(); }
  std::string text() const override {
    return fmt::format("{} {} {} {}", name(), text_of(plan_->gate), text_of(plan_->up), text_of(plan_->down));
  }

  void run(const NativeCall& call) const override {
    NativeRuntime& runtime = call.runtime;
    const std::int64_t n = plan_->gate.outputs();
    const auto x = normalized_input(call, plan_->before);
    const auto gate = runtime.scratch.take<float>(call.tokens * n);
    const auto up = runtime.scratch.take<float>(call.tokens * n);
    const Product products[] = {{plan_->gate, gate.data(), n}, {plan_->up, up.data(), n}};
    multiply(runtime, x, call.tokens, products);
    activate_in_place(runtime, plan_->activation, gate.data(), up.data(), call.tokens, n);
    add_branch(call, gate.data(), plan_->down, plan_->after);
  }
  mx::array composed(const mx::array& x, Constants& constants, const StepLayers&) const override {
    const mx::array n = composed_norm(x, plan_->before, "before", constants);
    const mx::array inner = composed_gated(plan_->activation, composed_linear(n, plan_->gate, "gate", constants),
                                           composed_linear(n, plan_->up, "up", constants));
    return composed_residual(x, inner, plan_->down, "down", plan_->after, constants);
  }

 private:
  std::shared_ptr<const MlpPlan> plan_;
};

}  // namespace

mx::array mlp_branch(const mx::array& x, std::shared_ptr<const MlpPlan> plan) {
  const std::int64_t hidden = plan->gate.inputs();
  GODWIT_CHECK(x.ndim() == 2 && x.shape(1) == hidden, "{} inputs, rows of {}", hidden, x.shape(-1));
  return native_node(x, hidden, std::make_shared<NativeMlp>(std::move(plan)));
}

}  // namespace godwit::ops
