#include "checkpoint/tensor_format.h"

#include <array>
#include <cstddef>

namespace godwit::checkpoint {
namespace {

// Indexed by TensorFormat.
constexpr std::array<FormatInfo, 30> kFormats = {{
    {"BOOL", 1, 1},     {"U8", 1, 1},       {"U16", 1, 2},      {"U32", 1, 4},        {"U64", 1, 8},
    {"I8", 1, 1},       {"I16", 1, 2},      {"I32", 1, 4},      {"I64", 1, 8},        {"F16", 1, 2},
    {"BF16", 1, 2},     {"F32", 1, 4},      {"F64", 1, 8},      {"C64", 1, 8},        {"F8_E4M3", 1, 1},
    {"F8_E5M2", 1, 1},  {"F8_E8M0", 1, 1},  {"Q4_0", 32, 18},   {"Q4_1", 32, 20},     {"Q5_0", 32, 22},
    {"Q5_1", 32, 24},   {"Q8_0", 32, 34},   {"Q2_K", 256, 84},  {"Q3_K", 256, 110},   {"Q4_K", 256, 144},
    {"Q5_K", 256, 176}, {"Q6_K", 256, 210}, {"IQ4_NL", 32, 18}, {"IQ4_XS", 256, 136}, {"MXFP4", 32, 17},
}};
static_assert(kFormats.size() == static_cast<std::size_t>(TensorFormat::mxfp4) + 1);

}  // namespace

const FormatInfo& info(TensorFormat format) { return kFormats[static_cast<std::size_t>(format)]; }

}  // namespace godwit::checkpoint
