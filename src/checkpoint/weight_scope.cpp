#include "checkpoint/weight_scope.h"

#include <fmt/format.h>

#include "checkpoint/weight_store.h"

namespace godwit::checkpoint {
namespace {

std::string join(const std::string& path, std::string_view name) {
  return path.empty() ? std::string(name) : fmt::format("{}.{}", path, name);
}

}  // namespace

WeightScope WeightScope::operator/(std::string_view name) const { return {store_, join(path_, name)}; }
WeightScope WeightScope::operator/(int index) const { return {store_, join(path_, std::to_string(index))}; }
bool WeightScope::has(std::string_view leaf) const { return store_->has(join(path_, leaf)); }

mx::array WeightScope::dense(std::string_view leaf, const mx::Shape& shape) const {
  return store_->dense(join(path_, leaf), shape);
}
std::optional<mx::array> WeightScope::dense_if_present(std::string_view leaf, const mx::Shape& shape) const {
  return store_->dense_if_present(join(path_, leaf), shape);
}
Weight WeightScope::matrix(int rows, int columns) const { return store_->matrix(path_, rows, columns); }
std::shared_ptr<const Weight> WeightScope::exchangeable_matrix(int rows, int columns) const {
  return store_->exchangeable_matrix(path_, rows, columns);
}
Weight WeightScope::experts(const ExpertNames& names, int experts, int rows, int columns) const {
  return store_->experts(path_, names, experts, rows, columns);
}
std::vector<float> WeightScope::values(int rows, int columns) const { return store_->values(path_, rows, columns); }

}  // namespace godwit::checkpoint
