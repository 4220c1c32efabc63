#include "oracle/golden_case.h"

#include <mlx/io.h>

#include "base/error.h"
#include "base/mx_ops.h"

namespace godwit::oracle {

namespace fs = std::filesystem;

mx::array read_expected(const fs::path& file, const std::string& name) {
  auto tensors = mx::load_safetensors(file.string()).first;
  auto found = tensors.find(name);
  if (found == tensors.end()) fail(ErrorCode::not_found, "golden", "{}: no tensor '{}'", file.string(), name);
  mx::array tensor = mx::contiguous(found->second);
  tensor.eval();
  return tensor;
}

GoldenCase read_case(const fs::path& folder) {
  const Json json = read_json_file(folder / "case.json");
  GoldenCase result;
  result.name = json.at("name").get<std::string>();
  result.model = folder / json.at("model").get<std::string>();
  for (const Json& twin : json.value("twins", Json::array()))
    result.twins.push_back(folder / twin.get<std::string>());
  result.tokens = json.at("tokens").get<std::vector<int>>();
  for (const auto& [name, spans] : json.at("plans").items()) {
    result.plans.push_back(
        {name, spans.get<std::vector<int>>(), read_expected(folder / "expected.safetensors", name)});
  }
  result.greedy_prompt = json.at("greedy_prompt").get<std::vector<int>>();
  result.greedy_tokens = json.at("greedy_tokens").get<std::vector<int>>();
  return result;
}

Manifest read_manifest(const fs::path& folder) {
  const Json json = read_json_file(folder / "manifest.json");
  return {json.at("versions").at("mlx").get<std::string>(), json.at("cases").get<std::vector<std::string>>(),
          json.value("groups", Json::object())};
}

std::vector<GoldenCase> read_group(const fs::path& folder, const std::string& group) {
  const Manifest manifest = read_manifest(folder);
  std::vector<GoldenCase> result;
  for (const std::string& name : manifest.cases) {
    if (read_json_file(folder / name / "case.json").at("group") == group) result.push_back(read_case(folder / name));
  }
  const std::size_t wanted = manifest.groups.value(group, std::size_t{0});
  if (result.empty() || result.size() != wanted)
    fail(ErrorCode::not_found, "golden", "group {}: {} cases found, the manifest counts {}", group, result.size(), wanted);
  return result;
}

}  // namespace godwit::oracle
