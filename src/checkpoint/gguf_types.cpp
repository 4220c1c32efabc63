#include "checkpoint/gguf_types.h"

#include <array>
#include <utility>

namespace godwit::checkpoint {
namespace {

constexpr std::array<std::pair<std::uint32_t, TensorFormat>, 21> kReadable = {{
    {0, TensorFormat::f32},     {1, TensorFormat::f16},     {2, TensorFormat::q4_0},
    {3, TensorFormat::q4_1},    {6, TensorFormat::q5_0},    {7, TensorFormat::q5_1},
    {8, TensorFormat::q8_0},    {10, TensorFormat::q2_k},   {11, TensorFormat::q3_k},
    {12, TensorFormat::q4_k},   {13, TensorFormat::q5_k},   {14, TensorFormat::q6_k},
    {20, TensorFormat::iq4_nl}, {23, TensorFormat::iq4_xs}, {24, TensorFormat::i8},
    {25, TensorFormat::i16},    {26, TensorFormat::i32},    {27, TensorFormat::i64},
    {28, TensorFormat::f64},    {30, TensorFormat::bf16},   {39, TensorFormat::mxfp4},
}};

constexpr std::array<std::pair<std::uint32_t, std::string_view>, 21> kNamed = {{
    {4, "Q4_2 (removed from the format)"},
    {5, "Q4_3 (removed from the format)"},
    {9, "Q8_1"},
    {15, "Q8_K"},
    {16, "IQ2_XXS"},
    {17, "IQ2_XS"},
    {18, "IQ3_XXS"},
    {19, "IQ1_S"},
    {21, "IQ3_S"},
    {22, "IQ2_S"},
    {29, "IQ1_M"},
    {31, "Q4_0_4_4 (removed from the format)"},
    {32, "Q4_0_4_8 (removed from the format)"},
    {33, "Q4_0_8_8 (removed from the format)"},
    {34, "TQ1_0"},
    {35, "TQ2_0"},
    {36, "IQ4_NL_4_4 (removed from the format)"},
    {37, "IQ4_NL_4_8 (removed from the format)"},
    {38, "IQ4_NL_8_8 (removed from the format)"},
    {40, "NVFP4"},
    {41, "Q1_0"},
}};

}  // namespace

std::optional<TensorFormat> gguf_format(std::uint32_t type_id) {
  for (const auto& [id, format] : kReadable)
    if (id == type_id) return format;
  return std::nullopt;
}

std::string_view gguf_type_name(std::uint32_t type_id) {
  for (const auto& [id, name] : kNamed)
    if (id == type_id && !name.empty()) return name;
  return "unknown";
}

}  // namespace godwit::checkpoint
