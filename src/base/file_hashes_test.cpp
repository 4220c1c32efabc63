#include "base/file_hashes.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <fstream>

#include "base/error.h"
#include "base/sha256.h"

namespace godwit {
namespace {

namespace fs = std::filesystem;

class FileHashesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / "godwit_file_hashes" /
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  std::string hash_of(const fs::path& file) {
    FileHashes hashes(folder_, Log([this](LogLevel, std::string_view text) { said_.emplace_back(text); }));
    const std::string hash = hashes.of(file, file_state(file));
    hashes.save();
    return hash;
  }

  fs::path folder_;
  std::vector<std::string> said_;
  const fs::path old_ = fs::canonical("/bin/sh");  // nobody has touched it for seconds
};

TEST_F(FileHashesTest, AFileIsReadOnceAcrossProcesses) {
  EXPECT_EQ(hash_of(old_), sha256_of_file(old_));
  EXPECT_EQ(said_.size(), 1u);
  EXPECT_EQ(hash_of(old_), sha256_of_file(old_));
  EXPECT_EQ(said_.size(), 1u);
}

TEST_F(FileHashesTest, TwoStartsAtOnceKeepWhatBothComputed) {
  const fs::path other = fs::canonical("/bin/ls");
  FileHashes first(folder_ / "new", Log()), second(folder_ / "new", Log());
  first.of(old_, file_state(old_));
  second.of(other, file_state(other));
  first.save();
  second.save();
  FileHashes later(folder_ / "new", Log([this](LogLevel, std::string_view text) { said_.emplace_back(text); }));
  later.of(old_, file_state(old_));
  later.of(other, file_state(other));
  EXPECT_TRUE(said_.empty()) << said_.front();
}

TEST_F(FileHashesTest, ADamagedMemoIsMadeAgain) {
  hash_of(old_);
  for (const char* text : {"{", "[]", R"({"/bin/sh": 3})"}) {
    std::ofstream(folder_ / "hashes.v1.json") << text;
    EXPECT_EQ(hash_of(old_), sha256_of_file(old_)) << text;
  }
  said_.clear();
  hash_of(old_);
  EXPECT_TRUE(said_.empty());
}

TEST_F(FileHashesTest, WhatADeadWriterLeftIsRemovedAndNothingElse) {
  const char* const kept[] = {"hashes.v1.json.bak", "hashes.v1.json.abcdefg", "hashes.v1.jsonXabcdef", "notes"};
  for (const char* name : {"hashes.v1.json.aBc123", "hashes.v1.json.living"}) std::ofstream(folder_ / name) << "{";
  for (const char* name : kept) std::ofstream(folder_ / name) << "mine";
  const int living = ::open((folder_ / "hashes.v1.json.living").c_str(), O_RDWR);
  ASSERT_EQ(::flock(living, LOCK_EX), 0);
  hash_of(old_);
  EXPECT_FALSE(fs::exists(folder_ / "hashes.v1.json.aBc123"));
  EXPECT_TRUE(fs::exists(folder_ / "hashes.v1.json.living"));
  for (const char* name : kept) EXPECT_TRUE(fs::exists(folder_ / name)) << name;
  ::close(living);
  hash_of(old_);
  EXPECT_FALSE(fs::exists(folder_ / "hashes.v1.json.living"));
}

TEST_F(FileHashesTest, WhatIsWrittenOrReplacedIsReadAgain) {
  const fs::path file = folder_ / "weights";
  std::ofstream(file) << "one";
  const std::string one = hash_of(file);
  std::ofstream(file) << "two";
  const std::string two = hash_of(file);
  EXPECT_NE(one, two);
  std::ofstream(folder_ / "new") << "one";
  fs::rename(folder_ / "new", file);
  EXPECT_EQ(hash_of(file), one);
}

TEST_F(FileHashesTest, AFileThatIsNoLongerTheOneThatWasOpenedIsRefused) {
  const fs::path file = folder_ / "weights";
  std::ofstream(file) << "one";
  const FileState opened = file_state(file);
  fs::remove(file);
  FileHashes hashes(folder_, Log());
  EXPECT_THROW(hashes.of(file, opened), Error);
  std::ofstream(file) << "longer";
  EXPECT_THROW(hashes.of(file, opened), Error);
}

}  // namespace
}  // namespace godwit
