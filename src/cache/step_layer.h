// A layer during a Step, as the Step itself drives it. Private to cache.
#pragma once

#include "cache/state.h"

namespace godwit::cache {

// A layer of some content overrides what that content can do; anything else is Error{internal}.
class StepLayer : public LayerState {
 public:
  mx::array attend(const mx::array& q, const mx::array& k, const mx::array& v, const AttendSpec& spec) override;
  mx::array attend(const mx::array& q, const AttendSpec& spec) override;
  mx::array attend_block(const mx::array& q, const mx::array& k, const mx::array& v,
                         const AttendSpec& spec) override;
  std::vector<mx::array> extend(const std::vector<mx::array>& planes) override;
  void write(const mx::array& k, const mx::array& v) override;
  mx::array recur(const RecurrentInputs& inputs) override;
  int native_layer() const override;

  virtual bool stored() const = 0;  // this Step's span was handed over
  // Adds the arrays that must be evaluated before publish().
  virtual void pending(std::vector<mx::array>& into) const = 0;
  // See Step.
  virtual StepSlot slot() const { return {}; }
  virtual std::vector<mx::array> slot_inputs() const;
  virtual void bind(const std::vector<mx::array>& inputs);
  virtual void accept(const std::vector<mx::array>& outputs);
  // Moves what this Step prepared into the row. Cannot fail.
  virtual void publish() noexcept = 0;
  // The Step ends without having been published.
  virtual void abandon() noexcept = 0;
};

// Error{internal} unless x is [tokens, heads, dim]; 0 heads: any number.
void check_packed(const mx::array& x, int tokens, int heads, int dim, const char* name);

}  // namespace godwit::cache
