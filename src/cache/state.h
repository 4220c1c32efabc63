// The state seam (docs/architecture.md): families see a Step and its LayerStates, never masks, pads, codecs
// or blocks.
//
// One forward: store.plan({{&row, tokens}}) -> Step; the model calls step.layer(i).attend(q, k, v, spec) per
// layer; the caller evaluates the outputs and step.pending(), then step.publish(). If anything throws before
// publish(), every row is as it was.
#pragma once

#include <climits>
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
#include "ops/step_layers.h"

namespace godwit::ops {
struct NativeRuntime;
}  // namespace godwit::ops

namespace godwit::cache {

enum class SpanKind {
  causal,         // each query sees the stored context and the span up to itself: prefill, decode, draft windows
  committed,      // causal, over tokens that are decided: each computes exactly what a step of its own would
  bidirectional,  // each query sees the stored context and the whole span
};

struct AttendSpec {
  float scale = 1.0f;                   // multiplied into the scores
  float soft_cap = 0.0f;                // 0: none; else scores become cap * tanh(score / cap)
  std::optional<mx::array> sinks = {};  // [heads], extra score column per head
  // [tokens, k] int32: the positions that each query sees of those it may see, -1 for none. Absent: all.
  std::optional<mx::array> selected = {};
};

// A gated delta step over one layer (reference/kv.md 9.4). All arrays hold the step's packed tokens.
struct RecurrentInputs {
  mx::array mixed;        // [tokens, channels], before the convolution
  mx::array conv_weight;  // [channels, kernel]
  mx::array decay;        // [tokens, value_heads], the logits a
  mx::array update;       // [tokens, value_heads], the logits b
  mx::array a_log;        // [value_heads]
  mx::array dt_bias;      // [value_heads]
  // a_log holds -exp(a_log), f32: GGUF files store no other form, and no logarithm gives its bits back.
  bool a_log_is_rate = false;
};

// What one layer sees during a Step. All rows' tokens are packed along axis 0, rows in plan order.
class LayerState {
 public:
  virtual ~LayerState() = default;
  // Stores k [tokens, kv_heads, key_dim] and v [tokens, kv_heads, value_dim], then attends q [tokens, heads,
  // query_dim()] to everything visible. Returns [tokens, heads, output_dim()] in q's dtype. At most once per Step.
  // Over latents (absorbed form): k are latents, v their rotary keys; a score is the product of [latent part | rotary
  // part] of q with both, and the answer is a sum of latents.
  virtual mx::array attend(const mx::array& q, const mx::array& k, const mx::array& v,
                           const AttendSpec& spec) = 0;
  // Read only, over what this layer holds including this Step's own span: shared-KV layers, donors, drafters,
  // cross attention.
  virtual mx::array attend(const mx::array& q, const AttendSpec& spec) = 0;
  // Stored context plus this block, bidirectional, storing nothing (diffusion).
  virtual mx::array attend_block(const mx::array& q, const mx::array& k, const mx::array& v,
                                 const AttendSpec& spec) = 0;
  // For attention that a family composes itself (latents in `reference`): stores this span's planes, each [tokens, heads, dim],
  // and gives each over all visible columns, [heads, columns, dim]. One row.
  virtual std::vector<mx::array> extend(const std::vector<mx::array>& planes) = 0;
  // Cross layers, once per row: keys and values [positions, kv_heads, dim] that attend(q, spec) reads from now on.
  virtual void write(const mx::array& k, const mx::array& v) = 0;
  // Recurrent layers in `reference` mode: moves the state over this span. Returns [tokens, value_heads, value_dim].
  virtual mx::array recur(const RecurrentInputs& inputs) = 0;
  // `native` mode: which of Step::native_layers() its fused primitive, attention or a recurrence, reads and writes.
  // Error{internal} in `reference`.
  virtual int native_layer() const = 0;
};

// Two rows are interchangeable exactly when their signatures are equal.
struct KvSignature {
  NumericMode mode;
  KvPolicy policy;
  StateNeeds needs;
  int table_version = kTurboTableVersion;

  bool operator==(const KvSignature&) const = default;
  // Canonical: "reference affine:4:64 start=0 tables=1 5*sliding{512}(1x256,256) full(1x256,256)".
  std::string to_string() const;
};

class Row;

// A span of tokens that may be taken back: begin, any number of Steps, then commit or rollback. Destroyed
// unresolved (an exception), it rolls everything back. While it is open the row is neither forked, truncated
// nor converted.
class Round {
 public:
  Round(Round&& other) noexcept;
  Round& operator=(Round&&) = delete;
  ~Round();

  void commit();
  // Keeps the first `keep` tokens of the round, 0 <= keep <= tokens appended in it.
  void rollback(int keep);

  struct Impl;
  explicit Round(std::unique_ptr<Impl> impl);

 private:
  std::unique_ptr<Impl> impl_;  // null once resolved
};

// One request's memory over all layers. Movable value; copying is the named fork(). A batch is a list of rows:
// filtering, reordering, merging and extracting are edits of that list.
class Row {
 public:
  Row(Row&&) noexcept;
  Row& operator=(Row&&) noexcept;
  ~Row();

  int position() const;  // tokens stored = position of the next token
  // An independent row that holds the first `prefix` tokens; blocks are shared, no byte moves. Throws if they
  // are gone. Its reads stay valid whatever happens to this row: a donor is a fork that StateStore::read takes.
  Row fork(int prefix) const;
  void truncate(int length);  // forgets everything from `length` on; all layers or none
  // The smallest length truncate() and fork() accept now (a wrapped window has lost what lies before it, an
  // encoded row what it held densely).
  int minimum_reusable_length() const;
  // The longest span that plan() takes now: a delayed conversion must not fall inside it.
  int longest_span(SpanKind kind = SpanKind::causal) const;
  Round begin();
  std::size_t bytes() const;  // device memory held, shared blocks included
  const KvSignature& signature() const;

  struct Impl;
  explicit Row(std::unique_ptr<Impl> impl);
  Impl& impl() { return *impl_; }
  const Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

// How a layer of a Step of one token stands in a graph that is built once and replayed (models/compiled_step.h).
enum class SlotKind {
  fixed,    // over arrays that have the same shapes at the next step: a ring that is full
  growing,  // over arrays with one column more at each step
  outside,  // its graph depends on more than that: it is called at each step
};
struct StepSlot {
  SlotKind kind = SlotKind::outside;
  std::string key = {};  // of two Steps with equal keys one's graph serves the other
};

// Tokens [begin, end) of a span, counted from its first, that see each other: an image.
struct Together {
  int begin, end;
};

struct RowSpan {
  Row* row;
  int tokens;  // >= 1
  SpanKind kind = SpanKind::causal;
  std::vector<Together> together = {};
};

// One forward, prepared then applied. Positions and intervals are captured once, at plan time.
class Step {
 public:
  Step(Step&&) noexcept;
  Step& operator=(Step&&) noexcept;
  ~Step();

  NumericMode mode() const;
  int token_count() const;
  // Position of each row's first token of this Step, in plan order. What a graph computes from positions it computes
  // from offset(), so that it serves other positions too. Error{unsupported} while a graph is recorded.
  std::span<const int> row_offsets() const;
  std::span<const int> row_tokens() const;
  mx::array offset(int row) const;  // i32, no axes
  LayerState& layer(int index);
  // `native` mode: where the keys and values or the memories of each layer lie, until the Step ends.
  ops::StepLayers native_layers();
  // Arrays to evaluate together with the outputs before publish().
  std::vector<mx::array> pending() const;
  // Moves lengths. Call after the eval; a Step that is destroyed without it leaves its rows as they were.
  // Broken promises (a layer that stored nothing, buffers not evaluated) are Error{internal} and change
  // nothing.
  void publish();

  // Recording, for Steps of one token of one row. A layer's slot_inputs() are what it computes over beside the token;
  // bind() puts others in their place, before the forward; what the forward left is pending(layer), and accept() hands
  // arrays over as if the forward had left them. Layers that are not `outside`.
  StepSlot slot(int layer) const;
  std::vector<mx::array> slot_inputs(int layer) const;
  void bind(int layer, const std::vector<mx::array>& inputs);
  void bind_offset(const mx::array& offset);
  void stand_in(int layer, LayerState& other);  // layer() gives `other` from now on
  std::vector<mx::array> pending(int layer) const;
  void accept(int layer, const std::vector<mx::array>& outputs);

  struct Impl;
  // Ends the step; its memory goes back to the store, whose next one needs none of its own then.
  struct PutAway {
    void operator()(Impl* impl) const noexcept;
  };
  using Owner = std::unique_ptr<Impl, PutAway>;
  explicit Step(Owner impl);

 private:
  Owner impl_;
};

// All rows of one opened model.
class StateStore {
 public:
  // Refuses by name, before anything is allocated, a policy that a layer cannot serve. `runtime` runs what
  // `native` layers attend outside the fused primitive; it must outlive the store.
  StateStore(StateNeeds needs, KvPolicy policy, NumericMode mode, ops::NativeRuntime* runtime = nullptr);
  ~StateStore();

  Row create() const;
  // Plans one forward: room for its tokens is made here, and rows that have reached their conversion point are
  // encoded. `reference` mode takes exactly one row: it runs its rows one after another.
  Step plan(std::span<const RowSpan> spans) const;
  // A Step over stored tokens that stores nothing: queries of `tokens` tokens per row that see all of it (a
  // window ends at the row's last token). There is nothing to publish.
  Step read(std::span<const RowSpan> spans) const;

  const StateNeeds& needs() const;
  const KvPolicy& policy() const;
  const KvSignature& signature() const;
  // Bytes one more token costs while no window is full, and an upper bound of what a row of `length` tokens
  // will hold: for admission.
  std::size_t bytes_per_token() const;
  std::size_t projected_bytes(int length) const;
  // Bytes of blocks that exist now, over all rows, forks and cache entries; each block once.
  std::size_t resident_bytes() const;

  struct Impl;
  Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace godwit::cache
