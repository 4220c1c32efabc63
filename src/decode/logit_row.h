// A row of logits with what a request changes of it: sparse adjustments over the model's own values, and a
// mask.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "decode/candidates.h"

namespace godwit::decode {

class LogitRow {
 public:
  // `logits` must outlive the row. `mask`: one bit per id, 32 a word, ids behind it are barred; empty: none
  // is. `masked_by` is whose it is, for errors; names outlive the row.
  LogitRow(std::span<const float> logits, std::span<const std::uint32_t> mask, std::string_view masked_by = "a mask");
  LogitRow(LogitRow&&) noexcept = default;
  LogitRow(const LogitRow&) = delete;  // mask_ looks at own_
  LogitRow& operator=(const LogitRow&) = delete;

  std::size_t size() const { return logits_.size(); }
  double logit(int id) const;
  void set(int id, double logit) { changed_[id] = logit; }
  void add(int id, double more) { set(id, logit(id) + more); }
  // Ids outside of the row have nothing to bar. `by`: the field that asks for it.
  void bar(int id, std::string_view by);
  void bar_all_but(std::span<const int> ids, std::string_view by);

  // Throw Error{internal} when a logit that may come is NaN or +infinity, or the model has none above -infinity;
  // Error{invalid_argument} that names who bars when all of those are barred.
  Candidates all() const;
  // The same as all() with keep_top_k(k), k >= 1, in one pass that looks at few logits twice.
  Candidates largest(int k) const;

 private:
  void own_mask();
  void note(std::string_view by);
  void check_some(bool is_empty) const;
  bool is_allowed(int id) const;

  std::span<const float> logits_;
  std::span<const std::uint32_t> mask_;
  std::vector<std::uint32_t> own_;  // what mask_ looks at, once something was barred
  std::map<int, double> changed_;
  std::vector<std::string_view> barred_by_;
};

}  // namespace godwit::decode
