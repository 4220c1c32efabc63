#include "ops/native_gated_delta.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "ops/composed_branches.h"
#include "ops/expert_router.h"
#include "ops/residual.h"

namespace godwit::ops {
namespace {

// One call of the node.
class GatedDeltaCall {
 public:
  GatedDeltaCall(const NativeCall& call, const GatedDeltaPlan& plan)
      : call_(call),
        plan_(plan),
        sizes_(plan.weights->sizes),
        mixed_(take(sizes_.channels())),
        z_(take(sizes_.value_channels())),
        decay_(take(sizes_.value_heads)),
        update_(take(sizes_.value_heads)),
        out_(take(sizes_.value_channels())) {}

  // [tokens, value_channels]: what the output projection takes.
  const float* moved(DeltaLayer& layer) {
    project();
    gated_delta_rows(call_.runtime, plan_.weights, layer,
                     {.mixed = mixed_.data(),
                      .decay = decay_.data(),
                      .update = update_.data(),
                      .out = out_.data(),
                      .tokens = call_.tokens});
    call_.runtime.share(call_.tokens, [&](std::int64_t begin, std::int64_t end) { gate(begin, end); });
    return out_.data();
  }

 private:
  std::span<float> take(std::int64_t n) const { return call_.runtime.scratch.take<float>(call_.tokens * n); }

  void project() {
    const auto x = normalized_input(call_, plan_.before);
    row_dots(call_.runtime, plan_.decay, x.rows, call_.tokens, decay_);
    row_dots(call_.runtime, plan_.update, x.rows, call_.tokens, update_);
    if (plan_.z) {
      const Product products[] = {{plan_.mixed, mixed_.data(), sizes_.channels()},
                                  {*plan_.z, z_.data(), sizes_.value_channels()}};
      return multiply(call_.runtime, x, call_.tokens, products);
    }
    const std::int64_t width = plan_.mixed.outputs();
    const auto grouped = take(width);
    const Product product{plan_.mixed, grouped.data(), width};
    multiply(call_.runtime, x, call_.tokens, {&product, 1});
    call_.runtime.share(call_.tokens, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t token = begin; token < end; ++token) ungroup(grouped.data() + token * width, token);
    });
  }

  void ungroup(const float* from, std::int64_t token) {
    const std::int64_t values = sizes_.value_channels() / sizes_.key_heads;
    float* const q = mixed_.data() + token * sizes_.channels();
    float* const k = q + sizes_.key_channels();
    float* const v = k + sizes_.key_channels();
    float* const z = z_.data() + token * sizes_.value_channels();
    const auto take_next = [&](std::int64_t n, float* to) {
      std::copy_n(from, n, to);
      from += n;
    };
    for (std::int64_t head = 0; head < sizes_.key_heads; ++head) {
      take_next(sizes_.key_dim, q + head * sizes_.key_dim);
      take_next(sizes_.key_dim, k + head * sizes_.key_dim);
      take_next(values, v + head * values);
      take_next(values, z + head * values);
    }
  }

  void gate(std::int64_t begin, std::int64_t end) {
    const std::int64_t first = begin * sizes_.value_channels(), rows = (end - begin) * sizes_.value_heads;
    float* const out = out_.data() + first;
    normalize(call_.runtime, plan_.norm, out, out, rows);
    call_.runtime.kernels.gated({.activation = kernels::Activation::silu,
                                 .gate = z_.data() + first,
                                 .up = out,
                                 .y = out,
                                 .rows = rows,
                                 .n = sizes_.value_dim,
                                 .gate_stride = sizes_.value_dim,
                                 .up_stride = sizes_.value_dim,
                                 .y_stride = sizes_.value_dim});
  }

  const NativeCall& call_;
  const GatedDeltaPlan& plan_;
  const GatedDeltaSizes& sizes_;
  std::span<float> mixed_, z_, decay_, update_, out_;
};

class NativeGatedDelta final : public NativePrimitive {
 public:
  NativeGatedDelta(std::shared_ptr<const GatedDeltaPlan> plan, int layer) : plan_(std::move(plan)), layer_(layer) {}
  const char* name() const override { return "NativeGatedDelta"; }
  const void* constants() const override { return plan_.get(); }
  int layer() const override { return layer_; }
  std::string text() const override {
    const GatedDeltaSizes& sizes = plan_->weights->sizes;
    return fmt::format("{} {} of {} and {} heads of {} and {}, convolution {}, {} {} {}", name(), layer_, sizes.key_heads,
                       sizes.value_heads, sizes.key_dim, sizes.value_dim, sizes.kernel, text_of(plan_->mixed),
                       plan_->z ? text_of(*plan_->z) : "grouped", text_of(plan_->out));
  }

  void run(const NativeCall& call) const override {
    GatedDeltaCall own(call, *plan_);
    add_branch(call, own.moved(layer_of(call.layers)), plan_->out, plan_->after);
  }
  mx::array composed(const mx::array& x, Constants& constants, const StepLayers& layers) const override {
    return composed_gated_delta(x, *plan_, layer_of(layers), constants);
  }

 private:
  DeltaLayer& layer_of(const StepLayers& layers) const {
    GODWIT_CHECK(layer_ >= 0 && static_cast<std::size_t>(layer_) < layers.delta.size(), "layer {} of a step of {}", layer_,
                 layers.delta.size());
    return layers.delta[static_cast<std::size_t>(layer_)];
  }

  std::shared_ptr<const GatedDeltaPlan> plan_;
  int layer_;
};

}  // namespace

mx::array gated_delta_branch(const mx::array& x, std::shared_ptr<const GatedDeltaPlan> plan, int layer) {
  const std::int64_t hidden = plan->mixed.inputs();
  GODWIT_CHECK(x.ndim() == 2 && x.shape(1) == hidden, "{} inputs, rows of {}", hidden, x.shape(-1));
  return native_node(x, hidden, std::make_shared<NativeGatedDelta>(std::move(plan), layer));
}

}  // namespace godwit::ops
