#include "state/oracle.h"

#include <algorithm>
#include <cmath>

#include "base/mx_ops.h"
#include "cache/gated_delta.h"
#include "cache/native_layout.h"
#include "cache/recurrent_test_support.h"
#include "cache/reference_codec.h"
#include "kernels/kv_codec.h"

namespace godwit::cache::state_test {
namespace {

constexpr int kBlock = static_cast<int>(kernels::kBlockPositions);

std::vector<float> floats(const mx::array& x) {
  const mx::array dense = mx::contiguous(mx::astype(x, mx::float32));
  mx::eval(dense);
  return {dense.data<float>(), dense.data<float>() + dense.size()};
}

std::vector<float> vectors(const Setup& setup, int layer, std::span<const int> tokens, int begin, int count,
                           Plane plane) {
  return floats(packed(setup, tokens, begin, count, layer, plane));
}

const LayerNeed& need_of(const Setup& setup, const Asked& asked) {
  return setup.needs[static_cast<std::size_t>(asked.layer)];
}

bool has_values(const LayerNeed& need) { return need.content == Content::keys_values; }

// What scores are products with, and what is summed, of the planes that a layer was given: [.., heads, dim]
// each.
mx::array whole_keys(const LayerNeed& need, const mx::array& keys, const mx::array& values) {
  return need.content == Content::latent ? mx::concatenate({keys, values}, -1) : keys;
}
mx::array whole_values(const LayerNeed& need, const mx::array& keys, const mx::array& values) {
  return has_values(need) ? values : keys;
}

int common(std::span<const int> a, std::span<const int> b) {
  return static_cast<int>(std::ranges::mismatch(a, b).in1 - a.begin());
}

kernels::Interval interval_of(const Setup& setup, const Asked& asked, int query, int stored) {
  int lo = 0, hi = stored;
  while (lo < stored && !sees(setup, asked, query, lo)) ++lo;
  while (hi > lo && !sees(setup, asked, query, hi - 1)) --hi;
  return {lo, hi};
}

int stored_end(const Asked& asked) { return asked.is_read ? asked.begin : asked.begin + asked.count; }

mx::Dtype dtype_of(DenseType dense) {
  if (dense == DenseType::bf16) return mx::bfloat16;
  return dense == DenseType::f16 ? mx::float16 : mx::float32;
}

}  // namespace

// One list of tokens in one layer. `native` holds blocks; both hold what is decoded from the codec on demand.
class Oracle::Stored {
 public:
  Stored(const Setup& setup, int layer, bool encoded)
      : setup_(setup),
        layer_(layer),
        need_(setup.needs[static_cast<std::size_t>(layer)]),
        codec_(encoded ? setup.policy.codec_of(layer) : Codec{}),
        layout_(native_layout(need_, codec_, setup.policy.dense, 1)) {}

  std::vector<int> tokens;
  std::vector<void*> pointers;
  // [positions, kv_heads, query_dim() or output_dim()]
  std::vector<double> keys, values;
  const NativePlanes& planes() const { return layout_.slots.front(); }

  void hold(std::span<const int> list, int end) {
    const auto wanted = list.first(static_cast<std::size_t>(end));
    const int same = common(tokens, wanted);
    decoded_ = std::min(decoded_, same);
    if (setup_.mode == NumericMode::native && same < end) store(list, same, end);
    tokens.assign(wanted.begin(), wanted.end());
  }

  void decode(ops::NativeRuntime& runtime) {
    const int end = static_cast<int>(tokens.size());
    keys.resize(static_cast<std::size_t>(end * need_.kv_heads * need_.query_dim()));
    values.resize(static_cast<std::size_t>(end * need_.kv_heads * need_.output_dim()));
    if (setup_.mode == NumericMode::native) {
      for (int block = decoded_ / kBlock; block * kBlock < end; ++block)
        for (int head = 0; head < need_.kv_heads; ++head) decode_block(runtime, block, head, end);
    } else if (decoded_ < end) {
      decode_reference();
    }
    decoded_ = end;
  }

 private:
  void store(std::span<const int> list, int begin, int end) {
    while (static_cast<int>(pointers.size()) * kBlock < end) {
      memory_.emplace_back(layout_.bytes);
      pointers.push_back(memory_.back().data());
    }
    const auto part = [&](Plane plane) { return packed(setup_, list, begin, end - begin, layer_, plane); };
    const std::vector<float> k = floats(whole_keys(need_, part(Plane::keys), part(Plane::values)));
    const std::vector<float> v = floats(part(Plane::values));
    kernels::store_kv({.k = k.data(),
                       .v = has_values(need_) ? v.data() : nullptr,
                       .blocks = pointers.data(),
                       .keys = planes().keys,
                       .values = planes().values,
                       .position = begin,
                       .tokens = end - begin,
                       .k_stride = need_.kv_heads * need_.query_dim(),
                       .v_stride = need_.kv_heads * need_.value_dim});
  }

  void decode_block(ops::NativeRuntime& runtime, int block, int head, int end) {
    const int count = std::min(kBlock, end - block * kBlock);
    std::vector<float> k(static_cast<std::size_t>(need_.query_dim() * kBlock)),
        v(static_cast<std::size_t>(need_.output_dim() * kBlock));
    runtime.kernels.decode_kv({pointers[static_cast<std::size_t>(block)], planes().keys, planes().values,
                               head, 0, count, k.data(), v.data()});
    if (planes().values.form == kernels::KvForm::turbo_values)
      runtime.kernels.restore_values({v.data(), count, need_.output_dim(), need_.output_dim()});
    for (int slot = 0; slot < count; ++slot) {
      const int row = (block * kBlock + slot) * need_.kv_heads + head;
      for (int d = 0; d < need_.query_dim(); ++d)
        keys[static_cast<std::size_t>(row * need_.query_dim() + d)] =
            static_cast<double>(k[static_cast<std::size_t>(d * kBlock + slot)]);
      for (int d = 0; d < need_.output_dim(); ++d)
        values[static_cast<std::size_t>(row * need_.output_dim() + d)] =
            static_cast<double>(v[static_cast<std::size_t>(slot * need_.output_dim() + d)]);
    }
  }

  void decode_reference() {
    const int count = static_cast<int>(tokens.size()) - decoded_;
    const auto back = [&](Plane plane) {
      const mx::array x =
          mx::swapaxes(mx::expand_dims(packed(setup_, tokens, decoded_, count, layer_, plane), 0), 1, 2);
      const PlaneRole role = plane == Plane::keys ? PlaneRole::keys : PlaneRole::values;
      const std::vector<mx::array> kept = encode(codec_, role, x, dtype_of(setup_.policy.dense));
      return mx::swapaxes(cache::decode(codec_, role, kept, mx::float32), 1, 2);
    };
    const mx::array k = back(Plane::keys), v = back(Plane::values);
    std::ranges::copy(floats(whole_keys(need_, k, v)),
                      keys.begin() + decoded_ * need_.kv_heads * need_.query_dim());
    std::ranges::copy(floats(whole_values(need_, k, v)),
                      values.begin() + decoded_ * need_.kv_heads * need_.output_dim());
  }

  const Setup& setup_;
  int layer_;
  const LayerNeed& need_;
  Codec codec_;
  NativeLayout layout_;
  std::vector<AlignedBuffer> memory_;
  int decoded_ = 0;
};

Oracle::Oracle(ops::NativeRuntime& runtime, const Setup& setup) : runtime_(runtime), setup_(setup) {}
Oracle::~Oracle() = default;

Oracle::Stored& Oracle::stored(const Asked& asked, int end) {
  constexpr std::size_t kLists = 6;
  auto& lists = kept_[{asked.layer, asked.encoded}];
  const auto wanted = asked.tokens.first(static_cast<std::size_t>(end));
  std::size_t best = 0;
  int most = -1;
  for (std::size_t i = 0; i < lists.size(); ++i)
    if (const int same = common(lists[i]->tokens, wanted); same > most) best = i, most = same;
  if (lists.size() < kLists && 2 * most < end) {
    best = lists.size();
    lists.push_back(std::make_unique<Stored>(setup_, asked.layer, asked.encoded));
  }
  lists[best]->hold(asked.tokens, end);
  return *lists[best];
}

bool sees(const Setup& setup, const Asked& asked, int query, int position) {
  const int window = need_of(setup, asked).window_size;
  if (asked.is_read) return position < asked.begin && (window == 0 || position >= asked.begin - window);
  const bool in_span = position >= asked.begin && position < asked.begin + asked.count;
  if (in_span && (asked.is_block || asked.kind == SpanKind::bidirectional)) return true;
  for (const Together& image : asked.together) {
    const auto inside = [&](int p) { return p >= asked.begin + image.begin && p < asked.begin + image.end; };
    if (inside(query) && inside(position)) return true;
  }
  return position <= query && (window == 0 || position > query - window);
}

std::vector<float> Oracle::native_bits(const Asked& asked) {
  const LayerNeed& need = need_of(setup_, asked);
  const Stored& blocks = stored(asked, stored_end(asked));
  const AttendSpec spec = setup_.spec(asked.layer);
  const std::vector<float> sinks = spec.sinks ? floats(*spec.sinks) : std::vector<float>();
  const std::vector<float> q =
      vectors(setup_, asked.layer, asked.tokens, asked.begin, asked.count, Plane::queries);
  std::vector<float> out(static_cast<std::size_t>(asked.count * kHeads * need.output_dim()));
  std::vector<kernels::Interval> seen;
  for (int i = 0; i < asked.count; ++i)
    seen.push_back(interval_of(setup_, asked, asked.begin + i, stored_end(asked)));
  const auto attend = [&](int begin, int end) {
    float* const to = out.data() + begin * kHeads * need.output_dim();
    runtime_.kernels.attention({.q = q.data() + begin * kHeads * need.query_dim(),
                                .out = to,
                                .intervals = seen.data() + begin,
                                .blocks = blocks.pointers.data(),
                                .keys = blocks.planes().keys,
                                .values = blocks.planes().values,
                                .heads = kHeads,
                                .query_begin = 0,
                                .query_end = end - begin,
                                .head_begin = 0,
                                .head_end = kHeads,
                                .q_stride = kHeads * need.query_dim(),
                                .out_stride = kHeads * need.output_dim(),
                                .scale = spec.scale,
                                .soft_cap = spec.soft_cap,
                                .sinks = sinks.empty() ? nullptr : sinks.data()});
    if (blocks.planes().values.form == kernels::KvForm::turbo_values)
      runtime_.kernels.restore_values({to, (end - begin) * kHeads, need.output_dim(), need.output_dim()});
  };
  if (asked.count > 1) attend(0, asked.count - 1);
  attend(asked.count - 1, asked.count);
  return out;
}

std::vector<double> Oracle::exact(const Asked& asked, int index) {
  const LayerNeed& need = need_of(setup_, asked);
  // A block in `native` stays as it came; `reference` takes it through the codec.
  const bool is_raw = asked.is_block && setup_.mode == NumericMode::native;
  const int end = stored_end(asked);
  Stored& held = stored(asked, is_raw ? asked.begin : end);
  held.decode(runtime_);
  std::vector<double> keys = held.keys, values = held.values;
  if (is_raw) {
    const auto part = [&](Plane plane) {
      return packed(setup_, asked.tokens, asked.begin, asked.count, asked.layer, plane);
    };
    const mx::array k = part(Plane::keys), v = part(Plane::values);
    for (const float each : floats(whole_keys(need, k, v))) keys.push_back(static_cast<double>(each));
    for (const float each : floats(whole_values(need, k, v))) values.push_back(static_cast<double>(each));
  }
  const AttendSpec spec = setup_.spec(asked.layer);
  const std::vector<float> q =
      vectors(setup_, asked.layer, asked.tokens, asked.begin + index, 1, Plane::queries);
  const std::vector<float> sinks = spec.sinks ? floats(*spec.sinks) : std::vector<float>();
  std::vector<double> out;
  for (int head = 0; head < kHeads; ++head) {
    const int kv = head / (kHeads / need.kv_heads);
    std::vector<double> sum(static_cast<std::size_t>(need.output_dim()), 0.0);
    double total = sinks.empty() ? 0.0 : std::exp(static_cast<double>(sinks[static_cast<std::size_t>(head)]));
    for (int position = 0; position < end; ++position) {
      if (!sees(setup_, asked, asked.begin + index, position)) continue;
      const std::size_t row = static_cast<std::size_t>(position * need.kv_heads + kv);
      double score = 0;
      for (std::size_t d = 0; d < static_cast<std::size_t>(need.query_dim()); ++d)
        score += static_cast<double>(q[static_cast<std::size_t>(head * need.query_dim()) + d]) *
                 keys[row * static_cast<std::size_t>(need.query_dim()) + d];
      score *= static_cast<double>(spec.scale);
      if (const double cap = static_cast<double>(spec.soft_cap); cap > 0)
        score = cap * std::tanh(score / cap);
      const double weight = std::exp(score);
      total += weight;
      for (std::size_t d = 0; d < sum.size(); ++d) sum[d] += weight * values[row * sum.size() + d];
    }
    for (const double value : sum) out.push_back(total > 0 ? value / total : 0);
  }
  return out;
}

std::vector<float> Oracle::recurrent_bits(const Asked& asked) {
  const int end = asked.begin + asked.count;
  const RecurrentNeed& need = need_of(setup_, asked).recurrent;
  const RecurrentInputs inputs = recurrent_inputs(setup_, asked.tokens, 0, end, asked.layer);
  const Forward all = setup_.mode == NumericMode::native ? native_forward(runtime_, need, inputs, {end})
                                                         : forward(need, inputs, {end});
  const std::vector<float> out = floats(all.out);
  return {out.begin() + asked.begin * need.value_heads * need.value_dim, out.end()};
}

}  // namespace godwit::cache::state_test
