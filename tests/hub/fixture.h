// A fake hub with one small model, an empty cache, and the options of a client that talks to it.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "fake_hub.h"
#include "hub/download.h"

namespace godwit::hub_tests {

inline constexpr const char* kRepo = "godwit-tests/tiny";
inline constexpr const char* kCommit = "0123456789abcdef0123456789abcdef01234567";
inline constexpr const char* kWeights = "model.safetensors";

// A safetensors file with one U8 tensor of `size` random bytes.
std::string safetensors_content(std::size_t size, unsigned seed);

std::string read_file(const std::filesystem::path& path);
void write_file(const std::filesystem::path& path, std::string_view content);

// Regular files and links below `folder`, relative and sorted.
std::vector<std::string> files_below(const std::filesystem::path& folder);

class HubFixture : public testing::Test {
 protected:
  HubFixture();
  ~HubFixture() override;

  void publish(std::size_t weight_bytes);  // config, tokenizer, one .bin and the weights under kRepo
  hub::HubOptions options() const;
  hub::GetRequest request() const { return {.repo = kRepo, .choice = {}}; }
  hub::GetResult get(const hub::HubOptions& with) const;
  hub::GetResult get() const { return get(options()); }

  std::filesystem::path repo_folder() const { return cache_ / "models--godwit-tests--tiny"; }
  std::filesystem::path ref() const { return repo_folder() / "refs" / "main"; }
  std::filesystem::path partial() const;  // of the weights
  void expect_complete() const;           // every byte right, ref written, nothing partial left

  FakeHub hub_;
  std::filesystem::path folder_, cache_;
  std::vector<HubFile> files_;
};

}  // namespace godwit::hub_tests
