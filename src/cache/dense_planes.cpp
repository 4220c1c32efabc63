#include "cache/dense_planes.h"

#include <utility>

#include "base/error.h"
#include "base/mx_ops.h"

namespace godwit::cache {
namespace {

constexpr int kGrowth = 256;  // mlx-lm's step: buffers grow by whole steps

// `buffer` with room for `tokens` columns after its columns [begin, end), which move to the front.
mx::array grown(const std::optional<mx::array>& buffer, int begin, int end, int tokens,
                const mx::array& like) {
  mx::Shape shape = like.shape();
  shape[2] = (tokens + kGrowth - 1) / kGrowth * kGrowth;
  const mx::array room = mx::zeros(shape, like.dtype());
  if (begin == end) return room;
  mx::Shape start(4, 0);
  mx::Shape stop = buffer->shape();
  start[2] = begin;
  stop[2] = end;
  return mx::concatenate({mx::slice(*buffer, start, stop), room}, 2);
}

mx::array written(const mx::array& buffer, int column, const mx::array& update) {
  mx::Shape start(4, 0);
  mx::Shape stop = buffer.shape();
  start[2] = column;
  stop[2] = column + update.shape(2);
  return mx::slice_update(buffer, update, start, stop);
}

// The buffer that an append started from: the graph still holds it until the append runs.
mx::array before_append(const mx::array& buffer) {
  if (buffer.status() != mx::array::Status::unscheduled) return buffer;
  return buffer.inputs().at(0);
}

}  // namespace

void DensePlanes::append(int position, int first_kept, const mx::array& k, const mx::array& v) {
  const int tokens = k.shape(2);
  GODWIT_CHECK(first_kept >= origin_ && first_kept <= position, "kept from {}, origin {}, position {}",
               first_kept, origin_, position);
  const bool fits = keys_ && position - origin_ + tokens <= keys_->shape(2);
  const int origin = fits ? origin_ : first_kept;
  const int begin = first_kept - origin_;
  const int end = position - origin_;
  mx::array keys = written(fits ? *keys_ : grown(keys_, begin, end, tokens, k), position - origin, k);
  mx::array values = written(fits ? *values_ : grown(values_, begin, end, tokens, v), position - origin, v);
  keys_ = std::move(keys);
  values_ = std::move(values);
  origin_ = origin;
  replaced_all_ = position == first_kept;
}

void DensePlanes::abandon() {
  if (!keys_) return;
  if (replaced_all_) {
    keys_.reset();
    values_.reset();
    return;
  }
  mx::array keys = before_append(*keys_);
  mx::array values = before_append(*values_);
  keys_ = std::move(keys);
  values_ = std::move(values);
}

mx::array DensePlanes::columns(const mx::array& buffer, int begin, int end) const {
  if (begin == origin_ && end - origin_ == buffer.shape(2)) return buffer;
  mx::Shape start(4, 0);
  mx::Shape stop = buffer.shape();
  start[2] = begin - origin_;
  stop[2] = end - origin_;
  return mx::slice(buffer, start, stop);
}

mx::array DensePlanes::columns(const mx::array& buffer, const std::vector<int>& positions) const {
  std::vector<int> indices(positions.size());
  for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = positions[i] - origin_;
  return mx::take(buffer, mx::array(indices.data(), {static_cast<int>(indices.size())}), 2);
}

mx::array DensePlanes::keys(int begin, int end) const { return columns(*keys_, begin, end); }
mx::array DensePlanes::values(int begin, int end) const { return columns(*values_, begin, end); }
mx::array DensePlanes::keys(const std::vector<int>& positions) const { return columns(*keys_, positions); }
mx::array DensePlanes::values(const std::vector<int>& positions) const {
  return columns(*values_, positions);
}

bool DensePlanes::evaluated() const {
  return empty() || (keys_->status() != mx::array::Status::unscheduled &&
                     values_->status() != mx::array::Status::unscheduled);
}

std::size_t DensePlanes::bytes() const { return empty() ? 0 : keys_->nbytes() + values_->nbytes(); }

}  // namespace godwit::cache
