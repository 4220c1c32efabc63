// One head of one position to its record: the formulas of kv_codec.h.
#pragma once

#include "kernels/kv_plane.h"

namespace godwit::kernels {

// x: plane.dim elements, of an encoded plane. Writes record_bytes(plane) bytes.
void encode_record(const KvPlane& plane, const float* x, unsigned char* record);

}  // namespace godwit::kernels
