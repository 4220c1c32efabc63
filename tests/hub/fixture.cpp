#include "fixture.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "hub/content_hash.h"

namespace godwit::hub_tests {
namespace fs = std::filesystem;

std::string safetensors_content(std::size_t size, unsigned seed) {
  std::string header =
      fmt::format(R"({{"weight":{{"dtype":"U8","shape":[{}],"data_offsets":[0,{}]}}}})", size, size);
  std::string content;
  for (int i = 0; i < 8; ++i) content += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return content + header + random_content(size, seed);
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_file(const fs::path& path, std::string_view content) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

std::vector<std::string> files_below(const fs::path& folder) {
  std::vector<std::string> names;
  if (fs::exists(folder))
    for (const auto& entry : fs::recursive_directory_iterator(folder))
      if (!entry.is_directory() || entry.is_symlink())
        names.push_back(fs::relative(entry.path().parent_path(), folder) / entry.path().filename());
  for (auto& name : names)
    if (name.starts_with("./")) name.erase(0, 2);
  std::sort(names.begin(), names.end());
  return names;
}

HubFixture::HubFixture() {
  std::string pattern = (fs::temp_directory_path() / "godwit-hub-XXXXXX").string();
  folder_ = ::mkdtemp(pattern.data());
  cache_ = folder_ / "cache";
}

HubFixture::~HubFixture() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

void HubFixture::publish(std::size_t weight_bytes) {
  files_ = {{"config.json", R"({"model_type":"llama","hidden_size":8})"},
            {"tokenizer.json", R"({"version":"1.0"})"},
            {"sub/notes.txt", "a file in a folder\n"},
            {"pytorch_model.bin", "never fetched"},
            {kWeights, safetensors_content(weight_bytes, 7), true}};
  hub_.add_repo(kRepo, kCommit, files_);
}

hub::HubOptions HubFixture::options() const {
  hub::HubOptions options;
  options.cache_root = cache_;
  options.endpoint = hub_.endpoint();
  options.disk_reserve = 0;
  options.retry.first_delay = std::chrono::milliseconds(1);
  return options;
}

hub::GetResult HubFixture::get(const hub::HubOptions& with) const {
  return hub::get_repository(request(), with, {}, {}, {});
}

fs::path HubFixture::partial() const {
  const auto& content = files_.back().content;
  hub::ContentHash hash(hub::HashKind::sha256, content.size());
  hash.update(std::as_bytes(std::span(content)));
  return repo_folder() / "blobs" / (hash.hex_digest() + ".incomplete");
}

void HubFixture::expect_complete() const {
  EXPECT_EQ(read_file(ref()), kCommit);
  for (const auto& file : files_) {
    const fs::path path = repo_folder() / "snapshots" / kCommit / file.name;
    if (file.name == "pytorch_model.bin")
      EXPECT_FALSE(fs::exists(path));
    else
      EXPECT_TRUE(read_file(path) == file.content) << path;
  }
  for (const auto& name : files_below(repo_folder())) EXPECT_FALSE(name.ends_with(".incomplete")) << name;
}

}  // namespace godwit::hub_tests
