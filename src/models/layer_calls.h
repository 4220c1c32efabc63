// The calls of layers in a recorded graph: noted while it is built, made again when it is replayed.
#pragma once

#include <vector>

#include "cache/state.h"
#include "models/compiled_step.h"
#include "ops/recorded_graph.h"

namespace godwit::models {

struct CallNotes {
  std::vector<LayerCall> calls;
  std::vector<ops::GraphCall> arrays;  // of each
};

// Stands in for a layer's state: gives placeholders of the shapes that the layer would give.
class CallRecorder final : public cache::LayerState {
 public:
  // `notes` must outlive the recorder.
  CallRecorder(int layer, const cache::LayerNeed& need, CallNotes& notes) : layer_(layer), need_(need), notes_(&notes) {}

  mx::array attend(const mx::array& q, const mx::array& k, const mx::array& v, const cache::AttendSpec& spec) override;
  mx::array attend(const mx::array& q, const cache::AttendSpec& spec) override;
  mx::array recur(const cache::RecurrentInputs& inputs) override;
  // Error{unsupported}: nothing that a decode step of a recorded family calls.
  mx::array attend_block(const mx::array& q, const mx::array& k, const mx::array& v,
                         const cache::AttendSpec& spec) override;
  std::vector<mx::array> extend(const std::vector<mx::array>& planes) override;
  void write(const mx::array& k, const mx::array& v) override;
  int native_layer() const override;

 private:
  mx::array note_attend(LayerCall::Kind kind, std::vector<mx::array> operands, cache::AttendSpec spec);
  mx::array note(LayerCall call, std::vector<mx::array> operands, const mx::Shape& shape, mx::Dtype dtype);

  int layer_;
  cache::LayerNeed need_;
  CallNotes* notes_;
};

mx::array make_call(const LayerCall& call, cache::Step& step, const std::vector<mx::array>& operands);

}  // namespace godwit::models
