// The state seam (docs/architecture.md): families see a Step and its LayerStates, never masks, pads, codecs
// or blocks.
//
// One forward: store.plan({{&row, tokens}}) -> Step; the model calls step.layer(i).attend(q, k, v, spec) per
// layer; the caller evaluates the outputs and step.pending(), then step.publish(). If anything throws before
// publish(), every row is as it was.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/mx.h"
#include "base/numeric_mode.h"
#include "cache/kv_policy.h"
#include "cache/layer_need.h"

namespace godwit::ops {
struct KvLayer;
}

namespace godwit::cache {

enum class SpanKind {
  causal,  // each query sees the stored context and the span up to itself: prefill, decode, draft windows
  bidirectional,  // each query sees the stored context and the whole span
};

struct AttendSpec {
  float scale = 1.0f;  // multiplied into the scores
  SpanKind kind = SpanKind::causal;
  float soft_cap = 0.0f;           // 0: none; else scores become cap * tanh(score / cap)
  std::optional<mx::array> sinks;  // [heads], extra score column per head
};

// What one layer sees during a Step. All rows' tokens are packed along axis 0, rows in plan order.
class LayerState {
 public:
  virtual ~LayerState() = default;
  // Stores k [tokens, kv_heads, key_dim] and v [tokens, kv_heads, value_dim], then attends q [tokens, heads,
  // key_dim] to everything visible. Returns [tokens, heads, value_dim] in q's dtype. At most once per Step.
  virtual mx::array attend(const mx::array& q, const mx::array& k, const mx::array& v,
                           const AttendSpec& spec) = 0;
  // Read only, over what this layer holds including this Step's own span: shared-KV layers, donors, drafters.
  virtual mx::array attend(const mx::array& q, const AttendSpec& spec) = 0;
  // Stored context plus this block, bidirectional, storing nothing (diffusion).
  virtual mx::array attend_block(const mx::array& q, const mx::array& k, const mx::array& v,
                                 const AttendSpec& spec) = 0;
  // `native` mode: what its fused attention primitive writes and reads; the three above are for `reference`.
  // Each is Error{internal} in the other mode.
  virtual std::shared_ptr<ops::KvLayer> native() = 0;
};

class StateStore;

// One request's memory over all layers. Movable value; copying is the named fork().
class Row {
 public:
  Row(Row&&) noexcept;
  Row& operator=(Row&&) noexcept;
  ~Row();

  int position() const;  // tokens stored = position of the next token
  Row fork(
      int prefix) const;  // an independent row that holds the first `prefix` tokens; throws if they are gone
  void truncate(int length);  // forgets everything from `length` on; all layers or none
  // The smallest length truncate() and fork() accept now (a wrapped window has lost what lies before it).
  int minimum_reusable_length() const;
  std::size_t bytes() const;  // device memory held
  std::string signature() const;

  struct Impl;
  explicit Row(std::unique_ptr<Impl> impl);
  Impl& impl() { return *impl_; }
  const Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

struct RowSpan {
  Row* row;
  int tokens;  // >= 1
};

// One forward, prepared then applied. Positions and intervals are captured once, at plan time.
class Step {
 public:
  Step(Step&&) noexcept;
  Step& operator=(Step&&) noexcept;
  ~Step();

  NumericMode mode() const;
  int token_count() const;
  // Position of each row's first token of this Step, in plan order. RoPE reads these and nothing else.
  std::span<const int> row_offsets() const;
  std::span<const int> row_tokens() const;
  LayerState& layer(int index);
  // Arrays to evaluate together with the outputs before publish().
  std::vector<mx::array> pending() const;
  // Moves lengths. Call after the eval; a Step that is destroyed without it leaves its rows as they were.
  // Broken promises (a layer that stored nothing, buffers not evaluated) are Error{internal} and change
  // nothing.
  void publish();

  struct Impl;
  explicit Step(std::unique_ptr<Impl> impl);

 private:
  std::unique_ptr<Impl> impl_;
};

// All rows of one opened model.
class StateStore {
 public:
  // Refuses by name, before anything is allocated, a policy that a layer cannot serve.
  StateStore(StateNeeds needs, KvPolicy policy, NumericMode mode);
  ~StateStore();

  Row create() const;
  // Plans one forward: room for its tokens is made here. `reference` mode takes exactly one row: it runs its
  // rows one after another.
  Step plan(std::span<const RowSpan> spans) const;

  const StateNeeds& needs() const;
  const KvPolicy& policy() const;
  // Bytes one more token costs while no window is full, and an upper bound of what a row of `length` tokens
  // will hold: for admission.
  std::size_t bytes_per_token() const;
  std::size_t projected_bytes(int length) const;

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace godwit::cache
