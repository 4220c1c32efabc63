// What the oracle scripts wrote: case.json and expected.safetensors of one golden case. The tensors are read
// with MLX's own reader, so that a fault in ours cannot hide on both sides.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/mx.h"

namespace godwit::oracle {

// One way to feed the token sequence: tokens per forward, over one row.
struct Plan {
  std::string name;
  std::vector<int> spans;
  mx::array logits;  // [sum of spans, vocabulary], in the model's dtype
};

struct GoldenCase {
  std::string name;
  std::filesystem::path model;               // a checkpoint folder or a .gguf file
  std::vector<std::filesystem::path> twins;  // other files of the same model: the same logits are expected
  std::vector<int> tokens;
  std::vector<Plan> plans;
  std::vector<int> greedy_prompt;
  std::vector<int> greedy_tokens;
};

GoldenCase read_case(const std::filesystem::path& folder);

// The tensor `name` of a safetensors file, evaluated and contiguous.
mx::array read_expected(const std::filesystem::path& file, const std::string& name);

// manifest.json of a golden folder.
struct Manifest {
  std::string mlx_version;
  std::vector<std::string> cases;
  Json groups = Json::object();  // group name -> number of cases, where the oracle groups them
};

Manifest read_manifest(const std::filesystem::path& folder);

// The cases of one group. Throws when there are fewer than the manifest counts.
std::vector<GoldenCase> read_group(const std::filesystem::path& folder, const std::string& group);

}  // namespace godwit::oracle
