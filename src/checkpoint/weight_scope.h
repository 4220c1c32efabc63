// Where layers find their weights. A WeightStore holds every tensor of a checkpoint under the names the graph
// uses (Hugging Face names; GGUF names are translated at load) and remembers which were used; a WeightScope
// is a path into it.
//
//   WeightScope layer = root / "model.layers" / 3;
//   Weight q = (layer / "self_attn" / "q_proj").matrix(rows, columns);
//   mx::array norm = (layer / "input_layernorm").dense("weight", {hidden});
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mx.h"
#include "checkpoint/weight.h"

namespace godwit::checkpoint {

class WeightStore;

// Where one matrix of each expert of a group lies, by names below a scope. The first form whose tensors exist
// is read; a file that has none misses the stacked one.
struct ExpertNames {
  enum class Part { whole, first_half, second_half };  // of the rows of a fused tensor
  std::string stacked;     // "switch_mlp.gate_proj": .weight is [experts, rows, columns], dense or quantized
  std::string each = {};   // "experts.{}.gate_proj": .weight is [rows, columns], dense or quantized
  std::string fused = {};  // "experts.gate_up_proj": as stacked, or the bare tensor of that name
  Part part = Part::whole;
  bool is_transposed = false;  // the fused tensor is dense [experts, columns, rows]
};

class WeightScope {
 public:
  WeightScope(std::shared_ptr<WeightStore> store, std::string path)
      : store_(std::move(store)), path_(std::move(path)) {}

  WeightScope operator/(std::string_view name) const;
  WeightScope operator/(int index) const;
  const std::string& path() const { return path_; }
  const WeightStore& store() const { return *store_; }

  bool has(std::string_view leaf) const;

  // The dense tensor path.leaf in the file's dtype. Throws Error{corrupt_file} naming tensor, wanted and
  // found shape; a missing one is recorded and reported by WeightStore::audit() together with all others (a
  // zero array stands in).
  mx::array dense(std::string_view leaf, const mx::Shape& shape) const;
  std::optional<mx::array> dense_if_present(std::string_view leaf, const mx::Shape& shape) const;

  // The matrix path.weight (with path.scales, path.biases when quantized) of logical shape [rows, columns].
  Weight matrix(int rows, int columns) const;
  // The same, listed by WeightStore::exchangeable() as long as the layer that asked for it is there.
  std::shared_ptr<const Weight> exchangeable_matrix(int rows, int columns) const;
  // The matrices of a group of experts, each [rows, columns], as one weight. Every tensor that they lie in
  // counts as used. Forms other than the stacked one are copied once, a matrix at a time. Error{corrupt_file}
  // when the experts differ in their format; Error{unsupported} in native mode for one whose axes are swapped.
  Weight experts(const ExpertNames& names, int experts, int rows, int columns) const;
  // The exact values of matrix() in f32, row by row: for what native mode computes in f32 whatever the file's
  // format, such as a router. Not touched by quantize_with(). A missing one is recorded as above.
  std::vector<float> values(int rows, int columns) const;

 private:
  std::shared_ptr<WeightStore> store_;
  std::string path_;
};

}  // namespace godwit::checkpoint
