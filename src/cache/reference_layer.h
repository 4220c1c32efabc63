// A layer of one row during a Step in `reference` mode: gathers what is stored in the oracle's column order, puts
// the step's own tokens behind and runs the oracle's ops. Private to cache.
#pragma once

#include <optional>
#include <vector>

#include "cache/reference_codec.h"
#include "cache/row_impl.h"
#include "cache/step_layer.h"

namespace godwit::cache {

// What the span does to the oracle's ring: committed tokens come one by one.
void append_span(RingShadow& ring, const RowSpan& span);

class ReferenceLayer final : public StepLayer {
 public:
  // The row must outlive this object; its length is the position of the span. `reads_only`: StateStore::read.
  ReferenceLayer(const Row::Impl& row, LayerPlace place, const RowSpan& span, bool reads_only);

  mx::array attend(const mx::array& q, const mx::array& k, const mx::array& v, const AttendSpec& spec) override;
  mx::array attend(const mx::array& q, const AttendSpec& spec) override;
  mx::array attend_block(const mx::array& q, const mx::array& k, const mx::array& v,
                         const AttendSpec& spec) override;
  std::vector<mx::array> extend(const std::vector<mx::array>& planes) override;

  bool stored() const override { return reads_only_ || !fresh_.empty(); }
  void pending(std::vector<mx::array>& into) const override;
  // Inputs: the stored columns, by plane and component, and where columns are put into a ring's order that order.
  StepSlot slot() const override;
  std::vector<mx::array> slot_inputs() const override;
  void bind(const std::vector<mx::array>& inputs) override;
  void accept(const std::vector<mx::array>& outputs) override;
  // What a published Step writes into the row's blocks, by plane; the Step does that for all layers at once.
  const std::vector<Components>& fresh() const { return fresh_; }
  void publish() noexcept override {}
  void abandon() noexcept override {}

 private:
  void store(const std::vector<mx::array>& planes);
  Components encoded(std::size_t plane, const mx::array& packed) const;
  // Plane `plane` over all that a query sees which stands behind the first `own` tokens of the span: stored columns,
  // then those, in the order of `ring`.
  Components visible(std::size_t plane, int own, const std::optional<RingShadow>& ring) const;
  Components stored_columns(std::size_t plane, int count) const;
  const SlotPlaces& places() const;
  // Columns that the one token of the span sees, itself included.
  int columns() const { return ring_ ? ring_->columns() : position_ + 1; }
  bool is_full_ring() const { return ring_ && window() > 1 && columns() == window(); }
  static mx::array column_order(const RingShadow& ring);
  std::vector<Components> keys_and_values(int own, const std::optional<RingShadow>& ring) const;
  // `borrowed`: the queries of another layer, which has no keys of its own.
  mx::array attend_stored(const mx::array& q, const AttendSpec& spec, bool borrowed);
  mx::array attend_committed(const mx::array& q, const AttendSpec& spec, bool borrowed) const;
  mx::array attend_to(const mx::array& q, const std::vector<Components>& seen, Visibility visibility,
                      const AttendSpec& spec, bool borrowed) const;
  int window() const { return group_.window(); }

  struct Bound {
    std::vector<Components> stored;  // by plane
    std::optional<mx::array> order;
  };

  const Row::Impl& row_;
  const LayerGroup& group_;
  std::size_t group_index_;
  std::size_t slot_;
  RowSpan span_;
  int position_;
  bool reads_only_;
  Codec codec_;                     // of what the row holds now
  std::optional<RingShadow> ring_;  // after this span
  std::vector<Components> fresh_;   // by plane, once stored
  std::optional<Bound> bound_;
  std::optional<std::vector<Components>> seen_;  // by plane, gathered once for all queries of the Step
};

}  // namespace godwit::cache
