#include "checkpoint/parameter_count.h"

#include <map>
#include <string_view>

namespace godwit::checkpoint {
namespace {

constexpr std::string_view kWeight = ".weight";

std::int64_t elements_of(const TensorEntry& entry) {
  std::int64_t count = 1;
  for (const int size : entry.shape) count *= size;  // the bytes of the file bound it
  return count;
}

int group_of(std::string_view path, const QuantizationMap& quantization) {
  const QuantizationMap::Answer answer = quantization.of(path);
  if (answer.says == QuantizationMap::Says::spec) return answer.spec.group;
  return quantization.defaults() ? quantization.defaults()->group : 0;
}

}  // namespace

std::int64_t parameter_count(std::span<const TensorEntry> tensors, const QuantizationMap& quantization) {
  std::map<std::string_view, const TensorEntry*> by_name;
  for (const TensorEntry& entry : tensors) by_name[entry.name] = &entry;
  std::int64_t count = 0;
  for (const TensorEntry& entry : tensors) count += elements_of(entry);
  for (const TensorEntry& entry : tensors) {
    if (entry.format != TensorFormat::u32 || !entry.name.ends_with(kWeight)) continue;
    const std::string path = entry.name.substr(0, entry.name.size() - kWeight.size());
    const auto scales = by_name.find(path + ".scales"), biases = by_name.find(path + ".biases");
    const int group = group_of(path, quantization);
    if (scales == by_name.end() || group == 0) continue;
    const std::int64_t groups = elements_of(*scales->second);
    count += groups * group - elements_of(entry) - groups;
    if (biases != by_name.end()) count -= elements_of(*biases->second);
  }
  return count;
}

}  // namespace godwit::checkpoint
