// The planes of MLX's affine quantization and of its mxfp4 into the packed layout.
#include <cstring>

#include "base/error.h"
#include "kernels/packed_layout.h"

namespace godwit::kernels {
namespace {

using Byte = std::uint8_t;

// 32 codes of kBits bits from the first byte on, each in the lowest bits that are left: eight fill whole
// bytes.
template <int kBits>
void read_codes(const Byte* bytes, Byte* codes) {
  for (int k = 0; k < 32; k += 8, bytes += kBits) {
    std::uint64_t eight = 0;
    std::memcpy(&eight, bytes, kBits);
    for (int i = 0; i < 8; i++) codes[k + i] = static_cast<Byte>(eight >> i * kBits & ((1u << kBits) - 1));
  }
}
void read_codes(int bits, const Byte* bytes, Byte* codes) {
  constexpr void (*kReaders[])(const Byte*, Byte*) = {nullptr,       nullptr,       read_codes<2>,
                                                      read_codes<3>, read_codes<4>, read_codes<5>,
                                                      read_codes<6>, nullptr,       read_codes<8>};
  kReaders[bits](bytes, codes);
}

// One row of the file: its codes and its two planes of scales.
struct Row {
  const Byte* codes;
  const Byte* scales[2];
};

void pack_row(const PackedShape& shape, const Layout& l, const Row& row, int r, Byte* records) {
  const int bits = l.high_bits + l.low_bits, per_record = shape.format.group / 32;
  const auto scale_bytes = static_cast<std::size_t>(l.scale_bytes);
  for (std::int64_t at = 0; at < shape.columns / shape.format.group; at++) {
    Byte* record = records + at * record_bytes(shape.format);
    for (int i = 0; i < l.halves; i++)
      std::memcpy(record + i * l.plane_bytes() + r * l.scale_bytes, row.scales[i] + at * l.scale_bytes,
                  scale_bytes);
    for (int g = 0; g < per_record; g++) {
      Byte codes[32];
      read_codes(bits, row.codes + (at * per_record + g) * 4 * bits, codes);
      place_codes(l, codes, r, record + l.head_bytes() + g * l.group_bytes());
    }
  }
}

}  // namespace

void pack_affine_bands(const PackedShape& shape, const AffinePlanes& planes, std::byte* packed,
                       std::int64_t band_begin, std::int64_t band_end) {
  if (!is_affine(shape.format) && shape.format.codes != PackedCodes::mxfp4)
    fail(ErrorCode::invalid_argument, "packed_weights", "codes {} have no planes",
         static_cast<int>(shape.format.codes));
  check_columns(shape);
  const Layout layout = layout_of(shape.format);
  const std::int64_t code_bytes = shape.columns * (layout.high_bits + layout.low_bits) / 8;
  const std::int64_t scale_bytes = shape.columns / shape.format.group * layout.scale_bytes;
  const auto row_of = [](const std::byte* plane, std::int64_t bytes) {
    return reinterpret_cast<const Byte*>(plane) + bytes;
  };
  for (std::int64_t band = band_begin; band < band_end; band++) {
    Byte* records = reinterpret_cast<Byte*>(packed) + band * band_bytes(shape);
    std::memset(records, 0, static_cast<std::size_t>(band_bytes(shape)));
    for (int r = 0; r < kPackedRows && band * kPackedRows + r < shape.rows; r++) {
      const std::int64_t n = band * kPackedRows + r;
      pack_row(shape, layout,
               {row_of(planes.codes, n * code_bytes),
                {row_of(planes.scales, n * scale_bytes),
                 layout.halves == 2 ? row_of(planes.biases, n * scale_bytes) : nullptr}},
               r, records);
    }
  }
}

}  // namespace godwit::kernels
