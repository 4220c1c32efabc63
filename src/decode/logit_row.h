// A row of logits with what a request changes of it: sparse adjustments over the model's own values, and a
// mask.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "decode/candidates.h"

namespace godwit::decode {

class LogitRow {
 public:
  // `logits` must outlive the row. `mask`: one bit per id, 32 a word, ids behind it are barred; empty: none
  // is.
  LogitRow(std::span<const float> logits, std::span<const std::uint32_t> mask);
  LogitRow(LogitRow&&) noexcept = default;
  LogitRow(const LogitRow&) = delete;  // mask_ looks at own_
  LogitRow& operator=(const LogitRow&) = delete;

  std::size_t size() const { return logits_.size(); }
  double logit(int id) const;
  void set(int id, double logit) { changed_[id] = logit; }
  void add(int id, double more) { set(id, logit(id) + more); }
  // Ids outside of the row have nothing to bar.
  void bar(int id);
  void bar_all_but(std::span<const int> ids);

  // Throw Error{internal} when a logit that may come is NaN or +infinity, or none is above -infinity.
  Candidates all() const;
  // The same as all() with keep_top_k(k), k >= 1, in one pass that looks at few logits twice.
  Candidates largest(int k) const;

 private:
  void own_mask();
  bool is_allowed(int id) const;

  std::span<const float> logits_;
  std::span<const std::uint32_t> mask_;
  std::vector<std::uint32_t> own_;  // what mask_ looks at, once something was barred
  std::map<int, double> changed_;
};

}  // namespace godwit::decode
