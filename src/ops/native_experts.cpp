#include "ops/native_experts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "ops/composed_branches.h"
#include "ops/grouped_products.h"
#include "ops/native_primitive.h"
#include "ops/residual.h"

namespace godwit::ops {
namespace {

// What a step holds for each place is some times a row, so long spans go through by parts.
constexpr std::int64_t kRowsTogether = 512;

// Networks that run beside each other: rows [begins[i], begins[i + 1]) of x go through networks[i], all of
// one width.
struct Bank {
  std::span<const GatedMatrices> networks;
  std::span<const std::int32_t> begins;
  kernels::Activations x;
  std::span<float> outputs;  // [rows, hidden]

  std::int64_t rows() const { return begins.back(); }
  std::int64_t width() const { return networks[0].width(); }
  std::int64_t hidden() const { return networks[0].hidden(); }
};

// Calls fn(network, first row, rows) for the networks that have rows.
template <class Fn>
void for_each_used(const Bank& bank, Fn&& fn) {
  for (std::size_t i = 0; i < bank.networks.size(); ++i)
    if (const std::int64_t begin = bank.begins[i], rows = bank.begins[i + 1] - begin; rows > 0)
      fn(bank.networks[i], begin, rows);
}

class SparseStep {
 public:
  SparseStep(const SparseMlpPlan& plan, const NativeCall& call)
      : plan_(plan), call_(call), runtime_(call.runtime) {}

  void run() const {
    const kernels::Activations x = normalized_input(call_, plan_.before);
    const RoutedRows routed = route(runtime_, plan_.router, x.rows, call_.tokens);
    const ExpertGroups groups =
        group_by_expert(runtime_.scratch, routed.experts, plan_.router.chosen, plan_.router.experts);
    const std::int64_t places = call_.tokens * plan_.router.chosen;
    // The outputs of the experts, place by place, and behind them those of the shared one, token by token.
    const auto outputs = take<float>((places + (plan_.shared ? call_.tokens : 0)) * hidden());
    const auto of_places = static_cast<std::size_t>(places * hidden());
    const std::int32_t all[] = {0, static_cast<std::int32_t>(call_.tokens)};
    Bank banks[2] = {{.networks = plan_.experts,
                      .begins = groups.begins,
                      .x = gathered(groups, x),
                      .outputs = outputs.first(of_places)}};
    if (plan_.shared)
      banks[1] = {.networks = {&plan_.shared->matrices, 1},
                  .begins = all,
                  .x = x,
                  .outputs = outputs.subspan(of_places)};
    run_networks({banks, plan_.shared ? std::size_t{2} : std::size_t{1}});
    add_up(groups, routed, x, outputs);
  }

 private:
  template <class T>
  std::span<T> take(std::int64_t n) const {
    return runtime_.scratch.take<T>(n);
  }
  std::int64_t hidden() const { return plan_.experts[0].hidden(); }

  // The row of each place.
  kernels::Activations gathered(const ExpertGroups& groups, const kernels::Activations& x) const {
    const std::int64_t n = hidden(), places = static_cast<std::int64_t>(groups.rows.size());
    const auto rows = take<float>(places * n);
    runtime_.share(places, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t place = begin; place < end; ++place) {
        const float* const row = x.rows + groups.rows[static_cast<std::size_t>(place)] * n;
        std::copy(row, row + n, rows.data() + place * n);
      }
    });
    return quantize(runtime_, rows.data(), places, n);
  }

  // All first products of all banks go out together, then all second ones.
  void run_networks(std::span<const Bank> banks) const {
    std::int64_t most = 0;
    for (const Bank& bank : banks) most += 2 * static_cast<std::int64_t>(bank.networks.size());
    const auto products = take<RowsProduct>(most);
    std::span<float> gates[2], ups[2];
    std::size_t count = 0;
    for (std::size_t b = 0; b < banks.size(); ++b) {
      const Bank& bank = banks[b];
      gates[b] = take<float>(bank.rows() * bank.width());
      ups[b] = take<float>(bank.rows() * bank.width());
      for_each_used(bank, [&](const GatedMatrices& network, std::int64_t begin, std::int64_t rows) {
        const auto x = rows_from(bank.x, begin, bank.hidden());
        products[count++] = {network.gate.get(), x, rows, gates[b].data() + begin * bank.width()};
        products[count++] = {network.up.get(), x, rows, ups[b].data() + begin * bank.width()};
      });
    }
    multiply_each(runtime_, products.first(count));
    count = 0;
    for (std::size_t b = 0; b < banks.size(); ++b) {
      const Bank& bank = banks[b];
      const auto inner = activated(bank, gates[b], ups[b]);
      for_each_used(bank, [&](const GatedMatrices& network, std::int64_t begin, std::int64_t rows) {
        products[count++] = {network.down.get(), rows_from(inner, begin, bank.width()), rows,
                             bank.outputs.data() + begin * bank.hidden()};
      });
    }
    multiply_each(runtime_, products.first(count));
  }

  // activation(gate) * up in the place of gate, as int8 rows.
  kernels::Activations activated(const Bank& bank, std::span<float> gate, std::span<float> up) const {
    const std::int64_t n = bank.width();
    activate_in_place(runtime_, plan_.activation, gate.data(), up.data(), bank.rows(), n);
    return quantize(runtime_, gate.data(), bank.rows(), n);
  }

  // Of each token: its terms in `outputs`, and their weights.
  void add_up(const ExpertGroups& groups, const RoutedRows& routed, const kernels::Activations& x,
              std::span<const float> outputs) const {
    const std::int64_t chosen = plan_.router.chosen, n = hidden();
    const std::int64_t terms = chosen + (plan_.shared ? 1 : 0);
    const auto index = take<std::int32_t>(call_.tokens * terms);
    const auto weights = take<float>(call_.tokens * terms);
    const auto shares = take<float>(call_.tokens);
    if (plan_.shared) {
      row_dots(runtime_, plan_.shared->gate, x.rows, call_.tokens, shares);
      runtime_.kernels.sigmoid({shares.data(), shares.data(), call_.tokens});
    }
    const auto* const stream = static_cast<const float*>(call_.input);
    runtime_.share(call_.tokens, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t token = begin; token < end; ++token) {
        std::int32_t* const own = index.data() + token * terms;
        float* const factors = weights.data() + token * terms;
        std::copy_n(groups.places.data() + token * chosen, chosen, own);
        std::copy_n(routed.shares.data() + token * chosen, chosen, factors);
        if (plan_.shared) {
          own[chosen] = static_cast<std::int32_t>(call_.tokens * chosen + token);
          factors[chosen] = shares[static_cast<std::size_t>(token)];
        }
        float* const y = call_.output + token * n;
        runtime_.kernels.weighted_sum({outputs.data(), own, factors, terms, y, n});
        if (plan_.after) normalize(runtime_, *plan_.after, y, y, 1);
        runtime_.kernels.add({stream + token * n, y, y, n});
      }
    });
  }

  const SparseMlpPlan& plan_;
  const NativeCall& call_;
  NativeRuntime& runtime_;
};

class NativeExperts final : public NativePrimitive {
 public:
  explicit NativeExperts(std::shared_ptr<const SparseMlpPlan> plan) : plan_(std::move(plan)) {}
  const char* name() const override { return "NativeExperts"; }
  const void* constants() const override { return plan_.get(); }
  std::string text() const override {
    std::string all = fmt::format("{} {} of {}", name(), plan_->router.chosen, plan_->router.experts);
    const auto add = [&](const GatedMatrices& m) {
      all += fmt::format(", {} {} {}", text_of(*m.gate), text_of(*m.up), text_of(*m.down));
    };
    for (const GatedMatrices& expert : plan_->experts) add(expert);
    if (plan_->shared) add(plan_->shared->matrices);
    return all;
  }

  void run(const NativeCall& call) const override {
    const std::int64_t n = plan_->experts[0].hidden();
    const auto* const x = static_cast<const float*>(call.input);
    for (std::int64_t begin = 0; begin < call.tokens; begin += kRowsTogether) {
      call.runtime.scratch.reset();
      const NativeCall part = {x + begin * n, call.output + begin * n,
                               std::min(kRowsTogether, call.tokens - begin), call.runtime};
      SparseStep(*plan_, part).run();
    }
  }
  mx::array composed(const mx::array& x, Constants& constants, const StepLayers&) const override {
    return composed_experts(x, *plan_, constants);
  }

 private:
  std::shared_ptr<const SparseMlpPlan> plan_;
};

}  // namespace

mx::array mlp_branch(const mx::array& x, std::shared_ptr<const SparseMlpPlan> plan) {
  GODWIT_CHECK(
      !plan->experts.empty() && static_cast<std::int64_t>(plan->experts.size()) == plan->router.experts,
      "{} experts, a router of {}", plan->experts.size(), plan->router.experts);
  const std::int64_t hidden = plan->experts[0].hidden();
  GODWIT_CHECK(x.ndim() == 2 && x.shape(1) == hidden, "{} inputs, rows of {}", hidden, x.shape(-1));
  return native_node(x, hidden, std::make_shared<NativeExperts>(std::move(plan)));
}

}  // namespace godwit::ops
