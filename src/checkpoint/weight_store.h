// Every tensor of an opened checkpoint by the name the graph uses, with a record of which were consumed.
//
// Tensors become arrays when they are asked for: plain ones share the file's pages where MLX allows it and
// are copied otherwise, GGUF blocks with an MLX layout are repacked exactly. Arrays handed out own or keep
// alive their memory. Not thread safe: the engine thread builds graphs.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/mx.h"
#include "checkpoint/quantization.h"
#include "checkpoint/tensor_entry.h"
#include "checkpoint/weight.h"
#include "checkpoint/weight_scope.h"

namespace godwit::checkpoint {

// What a family knows about the names in its files.
struct WeightRules {
  // Tensors whose name contains one of these are left out: "rotary_emb.inv_freq", "vision_tower.", ...
  std::vector<std::string> drop;
  // File name -> graph name. Absent: names stay. Also applied to the paths of quantization overrides.
  std::function<std::string(std::string_view)> rename;
};

class WeightStore {
 public:
  WeightStore(std::vector<TensorEntry> tensors, QuantizationMap quantization, std::string origin,
              const WeightRules& rules = {}, bool norms_include_one = false);

  bool has(std::string_view name) const { return tensors_.contains(name); }
  std::size_t size() const { return tensors_.size(); }
  const std::string& origin() const { return origin_; }
  // True for GGUF files of families whose norm is x * (1 + w): the file stores 1 + w, so the plain product
  // applies.
  bool norms_include_one() const { return norms_include_one_; }
  // From here on matrices come as WeightKind::packed, packed on `pool`: `native` mode. One whose format has
  // no packed layout is Error{unsupported} naming tensor and format. The pool is used during calls of
  // matrix() only.
  void pack_with(ThreadPool& pool) { pool_ = &pool; }
  bool native() const { return pool_ != nullptr; }
  // Names starting with `prefix`, sorted bytewise.
  std::vector<std::string> names(std::string_view prefix = "") const;
  // The files that the tensors lie in, sorted.
  std::vector<std::filesystem::path> files() const;
  // Shape and format without touching the data. Throws Error{not_found}.
  const TensorEntry& entry(std::string_view name) const;

  // See WeightScope for these three; `name` and `path` are whole.
  mx::array dense(std::string_view name, const mx::Shape& shape);
  std::optional<mx::array> dense_if_present(std::string_view name, const mx::Shape& shape);
  Weight matrix(std::string_view path, int rows, int columns);

  // The tensor as it is, whatever its shape (rope factors, kernels of convolutions). Throws Error{not_found}.
  mx::array raw(std::string_view name);
  // Marks a tensor as used without reading it.
  void consume(std::string_view name);

  // Every tensor used and every parameter supplied, or one Error{corrupt_file} that lists both kinds.
  void audit() const;

 private:
  struct Slot {
    TensorEntry entry;
    bool used = false;
  };
  Slot* find(std::string_view name);
  Slot& take(std::string_view name);
  void miss(std::string name) { missing_.insert(std::move(name)); }
  void check_shape(const TensorEntry& entry, const mx::Shape& wanted) const;
  Weight packed_matrix(std::string_view path, Slot& weight, int rows, int columns);
  Weight block_matrix(Slot& weight, int rows, int columns);
  Weight native_matrix(const TensorEntry& entry, int rows, int columns) const;
  Weight zero_matrix(int rows, int columns) const;

  std::map<std::string, Slot, std::less<>> tensors_;
  std::set<std::string> missing_;
  QuantizationMap quantization_;
  std::string origin_;
  bool norms_include_one_;
  ThreadPool* pool_ = nullptr;
};

}  // namespace godwit::checkpoint
