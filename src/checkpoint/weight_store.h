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
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mx.h"
#include "checkpoint/packed_cache.h"
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

// What audit() goes by: names that were used, and names that were asked for in vain.
struct WeightMarks {
  std::set<std::string, std::less<>> used;
  std::set<std::string> missing;
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
  // From here on matrices that `cache` knows are not packed again, and those that it does not are added to it. It must
  // be of the files of this store and outlive the calls of matrix().
  void cache_with(PackedCache& cache) { cache_ = &cache; }
  // From here on matrices of F32, F16 and BF16 numbers whose columns the format's blocks divide are quantized
  // to it before they are packed; needs pack_with(). Throws Error{unsupported} for a format that
  // kernels::can_quantize() denies.
  void quantize_with(kernels::BlockFormat format);
  int quantized() const { return quantized_; }  // how many were
  // Names starting with `prefix`, sorted bytewise.
  std::vector<std::string> names(std::string_view prefix = "") const;
  // The files that the tensors lie in, sorted.
  std::vector<std::filesystem::path> files() const;
  // Shape and format without touching the data. Throws Error{not_found}.
  const TensorEntry& entry(std::string_view name) const;

  // See WeightScope for these five; `name`, `path` and `scope` are whole.
  mx::array dense(std::string_view name, const mx::Shape& shape);
  std::optional<mx::array> dense_if_present(std::string_view name, const mx::Shape& shape);
  Weight matrix(std::string_view path, int rows, int columns);
  Weight experts(std::string_view scope, const ExpertNames& names, int experts, int rows, int columns);
  std::vector<float> values(std::string_view path, int rows, int columns);

  // The matrices that a linear layer reads at each call, by path: what an adapter may put others in the place of, of the
  // same kind and shape.
  struct Exchangeable {
    std::string path;
    std::shared_ptr<Weight> weight;
  };
  std::vector<Exchangeable> exchangeable() const;
  std::shared_ptr<const Weight> exchangeable_matrix(std::string_view path, int rows, int columns);

  // The tensor as it is, whatever its shape (rope factors, kernels of convolutions). Throws Error{not_found}.
  mx::array raw(std::string_view name);
  // Marks a tensor as used without reading it.
  void consume(std::string_view name);

  // Every tensor used and every parameter supplied, or one Error{corrupt_file} that lists both kinds.
  void audit() const;
  // For a caller that takes a graph back that it could not finish.
  WeightMarks marks() const;
  void restore(WeightMarks marks);

 private:
  struct Slot {
    TensorEntry entry;
    bool used = false;
  };
  Slot* find(std::string_view name);
  Slot& take(std::string_view name);
  void miss(std::string name) { missing_.insert(std::move(name)); }
  void check_shape(const TensorEntry& entry, const mx::Shape& wanted) const;
  static void check_dtype(const TensorEntry& entry, TensorFormat wanted);
  static void take_shape(Weight& weight, const mx::Shape& shape);
  static Weight zero_weight(const mx::Shape& shape);
  // Of the rows of each matrix that a tensor holds, those that native mode packs.
  struct RowRange {
    int begin, end;  // 0, 0: all of them
  };
  // The tensor `name` and, quantized, its other planes at `path`: [rows, columns] or [experts, rows,
  // columns]. `part` counts in native mode alone.
  Weight planes(std::string_view path, const std::string& name, const mx::Shape& shape, RowRange part = {});
  Weight packed_planes(std::string_view path, Slot& weight, const mx::Shape& shape, RowRange part);
  static void restore_single_row(TensorEntry& entry, const mx::Shape& shape);
  Weight block_planes(const TensorEntry& entry, const mx::Shape& shape) const;
  // In weight_store_native.cpp.
  [[noreturn]] static void refuse_native(const TensorEntry& entry, std::string_view format);
  static kernels::PackedFormat format_of(const TensorEntry& entry);
  template <typename Pack>
  std::shared_ptr<const ops::PackedMatrix> packed_once(const TensorEntry& entry, std::span<const std::byte> bytes,
                                                       const kernels::PackedShape& shape, Pack&& pack);
  std::shared_ptr<const ops::PackedMatrix> packed_rows(const TensorEntry& entry, std::span<const std::byte> bytes,
                                                       int rows, int columns);
  std::shared_ptr<const ops::PackedMatrix> pack_rows(const TensorEntry& entry, std::span<const std::byte> bytes,
                                                     const kernels::PackedShape& layout, bool is_quantized);
  Weight native_rows(const TensorEntry& entry, const mx::Shape& shape, RowRange part);
  Weight native_affine(std::string_view path, const TensorEntry& codes, const TensorEntry& scales,
                       const mx::Shape& shape, const QuantSpec& spec, RowRange part);
  Weight each_expert(const std::string& pattern, int experts, int rows, int columns);
  Weight fused_experts(const std::string& path, const ExpertNames& names, int experts, int rows, int columns);

  std::map<std::string, Slot, std::less<>> tensors_;
  std::set<std::string> missing_;
  std::vector<std::pair<std::string, std::weak_ptr<Weight>>> exchangeable_;
  QuantizationMap quantization_;
  std::string origin_;
  bool norms_include_one_;
  ThreadPool* pool_ = nullptr;
  PackedCache* cache_ = nullptr;
  std::optional<kernels::BlockFormat> quantize_;
  int quantized_ = 0;
};

}  // namespace godwit::checkpoint
