// What names a set of tensors by their content, whatever file, order or alignment they lie in.
#pragma once

#include <span>

#include "checkpoint/fingerprint.h"
#include "checkpoint/tensor_entry.h"

namespace godwit::checkpoint {

// SHA-256 over the entries sorted bytewise by name. Each gives the JSON triple ["name","dtype",[shape]]
// without spaces (dtype as FormatInfo names it) and then its bytes as they lie in the file, whose number
// follows from dtype and shape. Reads each byte once, from the mapped file, and gives the pages back. Two
// entries of one name are Error{invalid_argument} naming it.
Fingerprint tensor_fingerprint(std::span<const TensorEntry> entries);

}  // namespace godwit::checkpoint
