#include "models/layer_calls.h"

#include <utility>

#include "base/error.h"

namespace godwit::models {
namespace {

using Kind = LayerCall::Kind;

[[noreturn]] void refuse(const char* action) {
  fail(ErrorCode::unsupported, "compiled step", "a recorded graph does not {}", action);
}

}  // namespace

mx::array CallRecorder::note(LayerCall call, std::vector<mx::array> operands, const mx::Shape& shape,
                             mx::Dtype dtype) {
  mx::array result = ops::placeholder(shape, dtype);
  notes_->calls.push_back(std::move(call));
  notes_->arrays.push_back({std::move(operands), result});
  return result;
}

mx::array CallRecorder::note_attend(Kind kind, std::vector<mx::array> operands, cache::AttendSpec spec) {
  if (spec.selected) refuse("select positions");
  const mx::array q = operands[0];
  LayerCall call{.layer = layer_, .kind = kind, .has_sinks = spec.sinks.has_value()};
  if (spec.sinks) operands.push_back(*spec.sinks);
  spec.sinks.reset();
  call.spec = std::move(spec);
  return note(std::move(call), std::move(operands), {q.shape(0), q.shape(1), need_.output_dim()}, q.dtype());
}

mx::array CallRecorder::attend(const mx::array& q, const mx::array& k, const mx::array& v,
                               const cache::AttendSpec& spec) {
  return note_attend(Kind::store_and_attend, {q, k, v}, spec);
}

mx::array CallRecorder::attend(const mx::array& q, const cache::AttendSpec& spec) {
  return note_attend(Kind::attend, {q}, spec);
}

mx::array CallRecorder::recur(const cache::RecurrentInputs& in) {
  const cache::RecurrentNeed& need = need_.recurrent;
  return note({.layer = layer_, .kind = Kind::recur, .a_log_is_rate = in.a_log_is_rate},
              {in.mixed, in.conv_weight, in.decay, in.update, in.a_log, in.dt_bias},
              {in.mixed.shape(0), need.value_heads, need.value_dim}, in.mixed.dtype());
}

mx::array CallRecorder::attend_block(const mx::array&, const mx::array&, const mx::array&, const cache::AttendSpec&) {
  refuse("attend to a block");
}
std::vector<mx::array> CallRecorder::extend(const std::vector<mx::array>&) { refuse("hand out a layer's planes"); }
void CallRecorder::write(const mx::array&, const mx::array&) { refuse("write a cross layer"); }
int CallRecorder::native_layer() const { refuse("hold native primitives"); }

mx::array make_call(const LayerCall& call, cache::Step& step, const std::vector<mx::array>& operands) {
  cache::LayerState& state = step.layer(call.layer);
  if (call.kind == Kind::recur)
    return state.recur({.mixed = operands[0],
                        .conv_weight = operands[1],
                        .decay = operands[2],
                        .update = operands[3],
                        .a_log = operands[4],
                        .dt_bias = operands[5],
                        .a_log_is_rate = call.a_log_is_rate});
  cache::AttendSpec spec = call.spec;
  if (call.has_sinks) spec.sinks = operands.back();
  if (call.kind == Kind::attend) return state.attend(operands[0], spec);
  return state.attend(operands[0], operands[1], operands[2], spec);
}

}  // namespace godwit::models
