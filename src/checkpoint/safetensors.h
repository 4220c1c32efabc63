// The safetensors header: u64 length (little-endian), JSON of that length, then the data of all tensors.
//
// Accepted: what the format allows and more than one dtype MLX lacks (F8_*: bytes). Refused with an error
// naming file and tensor: a header longer than the file or than 256 MiB, malformed JSON, duplicate names,
// unknown dtypes, offsets that are reversed, outside the data, overlapping another tensor's, or not as long
// as the shape. Data need not be aligned.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "base/file_map.h"
#include "checkpoint/tensor_entry.h"

namespace godwit::checkpoint {

std::vector<TensorEntry> read_safetensors(std::shared_ptr<const FileMap> file);

// The weight files of a folder: those named by model.safetensors.index.json, else model*.safetensors, sorted.
// Throws Error{not_found} when there are none and when the index names a file that is missing.
std::vector<std::filesystem::path> safetensors_files(const std::filesystem::path& folder);

// All tensors of a folder. A name in two files is an error.
std::vector<TensorEntry> read_safetensors_folder(const std::filesystem::path& folder);

}  // namespace godwit::checkpoint
