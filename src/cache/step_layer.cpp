#include "cache/step_layer.h"

#include "base/error.h"

namespace godwit::cache {
namespace {

[[noreturn]] void refuse(const char* action) {
  fail(ErrorCode::internal, "state", "this layer cannot {} in this mode", action);
}

}  // namespace

mx::array StepLayer::attend(const mx::array&, const mx::array&, const mx::array&, const AttendSpec&) {
  refuse("store and attend");
}
mx::array StepLayer::attend(const mx::array&, const AttendSpec&) { refuse("attend"); }
mx::array StepLayer::attend_block(const mx::array&, const mx::array&, const mx::array&, const AttendSpec&) {
  refuse("attend to a block");
}
std::vector<mx::array> StepLayer::extend(const std::vector<mx::array>&) { refuse("hand out its planes"); }
void StepLayer::write(const mx::array&, const mx::array&) { refuse("be written"); }
mx::array StepLayer::recur(const RecurrentInputs&) { refuse("recur"); }
std::vector<mx::array> StepLayer::slot_inputs() const { refuse("hand out what it computes over"); }
void StepLayer::bind(const std::vector<mx::array>&) { refuse("compute over other arrays"); }
void StepLayer::accept(const std::vector<mx::array>&) { refuse("take what another forward left"); }
int StepLayer::native_layer() const { refuse("serve a native primitive"); }

void check_packed(const mx::array& x, int tokens, int heads, int dim, const char* name) {
  const bool fits =
      x.ndim() == 3 && x.shape(0) == tokens && (heads == 0 || x.shape(1) == heads) && x.shape(2) == dim;
  GODWIT_CHECK(fits, "{} is not [{}, {}, {}]", name, tokens, heads, dim);
}

}  // namespace godwit::cache
