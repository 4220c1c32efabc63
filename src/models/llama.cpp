// Llama and what shares its graph: GQA, SwiGLU, half-split or traditional rotary, optional biases, optional
// sliding layers. Truth: mlx_lm/models/llama.py.
#include <array>

#include "models/dense.h"
#include "models/families.h"
#include "models/llama_dialect.h"

namespace godwit::models {
namespace {

constexpr std::array<std::string_view, 3> kAliases = {"iquestcoder", "mistral", "xverse"};
constexpr std::array<checkpoint::GgufDialect, 1> kGguf = {
    {{.architecture = "llama", .rows_are_permuted = true}}};

bool accepts(const checkpoint::Config& config) { return !is_minicpm5(config); }

}  // namespace

constexpr checkpoint::Dialect kLlamaDialect = {.model_type = "llama", .aliases = kAliases, .gguf = kGguf};
const Family llama = measured_in_native(dense_family<llama_spec>("llama", &kLlamaDialect, accepts));

}  // namespace godwit::models
