#include "checkpoint/packed_cache.h"

#include <sys/stat.h>

#include <chrono>
#include <fstream>
#include <random>

#include "checkpoint/test_files.h"

namespace godwit::checkpoint {
namespace {

namespace fs = std::filesystem;
using kernels::PackedShape;

const PackedShape kSmall{kernels::packed_format(kernels::BlockFormat::q4_0), 40, 64};
const PackedShape kWide{kernels::packed_affine(8, 64, kernels::ScaleType::bf16), 17, 128};

class PackedCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    weights_ = write_file(root_ / "weights", "the content of the weights");
    std::mt19937 random(7);
    for (auto* bytes : {&small_, &wide_}) {
      bytes->resize(64 * 1024);
      for (std::byte& byte : *bytes) byte = static_cast<std::byte>(random());
    }
  }
  void TearDown() override { fs::remove_all(root_); }

  PackedCache open(const std::string& variant = "") {
    said_.clear();
    return PackedCache(folder(), {{weights_, file_state(weights_)}}, variant,
                       Log([this](LogLevel level, std::string_view text) {
                         if (level == LogLevel::warning) said_.emplace_back(text);
                       }));
  }
  fs::path folder() const { return root_ / "cache" / "packed"; }

  std::shared_ptr<const ops::PackedMatrix> pack_small() {
    return std::make_shared<const ops::PackedMatrix>(kSmall, small_, pool_);
  }
  std::shared_ptr<const ops::PackedMatrix> pack_wide() {
    const kernels::AffinePlanes planes{wide_.data(), wide_.data() + 8192, wide_.data() + 16384};
    return std::make_shared<const ops::PackedMatrix>(kWide, planes, pool_);
  }
  fs::path fill() {
    PackedCache cache = open();
    cache.add("small", pack_small());
    cache.add("wide", pack_wide());
    cache.save();
    EXPECT_TRUE(said_.empty()) << said_.front();
    return cache.file();
  }
  static bool same(const ops::PackedMatrix& a, const ops::PackedMatrix& b) {
    return std::ranges::equal(a.bytes(), b.bytes());
  }

  const fs::path root_ = fresh_folder("packed_cache");
  fs::path weights_;
  std::vector<std::byte> small_, wide_;
  std::vector<std::string> said_;
  ThreadPool pool_{2};
};

TEST_F(PackedCacheTest, GivesBackWhatWasPackedAndMapsIt) {
  const fs::path file = fill();
  struct stat info {};
  ASSERT_EQ(::stat(file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  ASSERT_EQ(::stat(folder().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700U);
  PackedCache cache = open();
  const auto small = cache.find("small", kSmall), wide = cache.find("wide", kWide);
  ASSERT_TRUE(small && wide);
  EXPECT_TRUE(same(*small, *pack_small()));
  EXPECT_TRUE(same(*wide, *pack_wide()));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(wide->data()) % 64, 0U);
  cache.save();
  ASSERT_EQ(::stat(file.c_str(), &info), 0);
  EXPECT_EQ(file_state(file).bytes, static_cast<std::uint64_t>(info.st_size));
}

TEST_F(PackedCacheTest, KnowsNothingOfAnotherNameShapeVariantOrContent) {
  const fs::path file = fill();
  {
    PackedCache cache = open();
    EXPECT_FALSE(cache.find("other", kSmall));
    EXPECT_FALSE(cache.find("small", kWide));
    EXPECT_FALSE(cache.find("small", {kSmall.format, 39, 64}));
    EXPECT_FALSE(cache.find("small", {kernels::packed_format(kernels::BlockFormat::q4_1), 40, 64}));
  }
  EXPECT_NE(open("Q8_0").file(), file);
  write_file(weights_, "other content of the weights");
  EXPECT_NE(open().file(), file);
  fs::rename(write_file(root_ / "copy", "the content of the weights"), weights_);
  EXPECT_EQ(open().file(), file) << "a copy is the same model";
}

TEST_F(PackedCacheTest, NothingIsWrittenWhereEverythingWasKnown) {
  const fs::path file = fill();
  const FileState before = file_state(file);
  PackedCache cache = open();
  cache.find("small", kSmall);
  cache.save();
  EXPECT_EQ(file_state(file).inode, before.inode);
  cache.add("more", pack_small());
  cache.save();
  EXPECT_NE(file_state(file).inode, before.inode);
  PackedCache after = open();
  EXPECT_TRUE(after.find("small", kSmall) && after.find("more", kSmall));
  EXPECT_FALSE(after.find("wide", kWide)) << "what nobody asked for is not part of the model";
}

// Any damage of the header or the length costs packing again, with a warning or as something unknown, and no more.
TEST_F(PackedCacheTest, DamageIsPackedAgain) {
  const fs::path file = fill();
  std::string whole(static_cast<std::size_t>(fs::file_size(file)), '\0');
  std::ifstream(file, std::ios::binary).read(whole.data(), static_cast<std::streamsize>(whole.size()));
  const auto right = pack_small();
  const auto try_it = [&](const std::string& bytes) {
    write_file(file, bytes);
    PackedCache cache = open();
    const auto found = cache.find("small", kSmall);
    if (found) {
      EXPECT_EQ(found->bytes().size(), right->bytes().size());
    }
  };
  for (std::size_t length = 0; length < whole.size(); length += length < 600 ? 1 : 997) try_it(whole.substr(0, length));
  for (std::size_t at = 0; at < 600; ++at)
    for (const char flip : {'\x01', '\x80'}) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ flip);
      try_it(bytes);
    }
  write_file(file, whole.substr(0, 40));
  PackedCache cache = open();
  EXPECT_FALSE(cache.find("small", kSmall));
  EXPECT_EQ(said_.size(), 1U);
  cache.add("small", right);
  cache.save();
  EXPECT_TRUE(same(*open().find("small", kSmall), *right));
}

TEST_F(PackedCacheTest, NothingIsHashedBeforeAMatrixIsAskedFor) {
  {
    PackedCache cache = open();
    cache.save();
  }
  EXPECT_FALSE(fs::exists(folder())) << "native arithmetic refused the model before its first matrix";
  PackedCache cache = open();
  write_file(weights_, "changed after it was opened");
  expect_error(ErrorCode::io, {weights_.string(), "changed"}, [&] { cache.find("small", kSmall); });
}

TEST_F(PackedCacheTest, WhatWasUsedLongestAgoMakesRoom) {
  fs::create_directories(folder());
  const auto other = [&](char name, int hours) {
    const fs::path path = write_file(folder() / (std::string(64, name) + ".packed"), std::string(1 << 20, '\0'));
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(hours));
    return path;
  };
  const fs::path older = other('a', 2), newer = other('b', 1);
  const fs::path notes = write_file(folder() / "notes.txt", "mine");
  PackedCache cache = open();
  cache.add("small", pack_small());
  cache.save((std::uint64_t{64} << 20) + (std::uint64_t{3} << 19));  // the largest header, this one, and one of the others
  EXPECT_FALSE(fs::exists(older));
  EXPECT_TRUE(fs::exists(newer));
  EXPECT_TRUE(fs::exists(notes));
  EXPECT_TRUE(fs::exists(cache.file()));
  PackedCache full = open("other");
  full.add("small", pack_small());
  full.save(1000);
  EXPECT_FALSE(fs::exists(full.file()));
  EXPECT_TRUE(fs::exists(newer)) << "nothing is removed for what does not fit anyway";
  EXPECT_EQ(said_.size(), 1U);
}

TEST_F(PackedCacheTest, AFolderThatCannotBeWrittenIsAWarning) {
  write_file(root_ / "file", "");
  said_.clear();
  PackedCache cache(root_ / "file" / "packed", {{weights_, file_state(weights_)}}, "",
                    Log([this](LogLevel level, std::string_view text) {
                      if (level == LogLevel::warning) said_.emplace_back(text);
                    }));
  cache.add("small", pack_small());
  cache.save();
  EXPECT_FALSE(said_.empty());
}

}  // namespace
}  // namespace godwit::checkpoint
