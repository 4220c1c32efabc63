// One tensor of a file: name, format, shape and where its bytes lie. Made by the readers after every size was
// checked.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/file_map.h"
#include "base/mx.h"
#include "checkpoint/tensor_format.h"

namespace godwit::checkpoint {

struct TensorEntry {
  std::string name;
  TensorFormat format = TensorFormat::f32;
  mx::Shape shape;  // row-major, logical: for block formats in elements
  std::shared_ptr<const FileMap> file;
  std::size_t offset = 0;  // from the start of the file; offset + size lies inside it
  std::size_t size = 0;
  // 0, or the number of heads whose rows are stored for pairwise rotation (GGUF of the llama kind); undone at
  // load.
  int permuted_heads = 0;

  std::span<const std::byte> bytes() const { return file->bytes().subspan(offset, size); }
};

// "model.safetensors: blk.0.attn_q.weight", for messages.
std::string describe(const TensorEntry& entry);
std::string shape_text(const mx::Shape& shape);

// Throws Error{corrupt_file} unless offset + bytes of the shape fit into `file`; sets entry.size. `what`
// names it.
void place(TensorEntry& entry, std::shared_ptr<const FileMap> file, std::uint64_t offset, std::uint64_t size);

// Throws Error{corrupt_file} when two tensors of one file share bytes.
void check_no_overlap(std::span<const TensorEntry> entries);

// Bytes of a tensor: the product of `shape` in blocks of `format`. Rows must hold whole blocks.
std::uint64_t tensor_bytes(TensorFormat format, std::span<const std::uint64_t> shape, std::string_view what);

// A plain tensor as an array of `shape` (F8 formats as u8). The file stays mapped as long as the array needs
// it.
mx::array to_array(const TensorEntry& entry);
// The bytes of a block tensor as u8 [..., bytes per row].
mx::array to_byte_array(const TensorEntry& entry);

}  // namespace godwit::checkpoint
