// The cold tier on a disk that lies: damaged, foreign and vanished files, a lost index, a full disk. All of
// it is a miss.
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cerrno>
#include <random>
#include <utility>

#include "base/error.h"
#include "cache/cold_test_support.h"
#include "cache/cold_tier.h"

namespace godwit::cache {
namespace {

constexpr std::size_t kVersionEnd =
    12;  // magic and version: past damage there, nobody knows whose file it is

// One record, whose file the test writes.
class ColdDamage : public ::testing::Test {
 protected:
  void SetUp() override { tier_.flush(); }  // the start looks at files, too

  // Whether the file `bytes` is a hit.
  bool hit(const std::string& bytes) {
    write_bytes(path_, bytes);
    return holds(tier_, record_);
  }
  bool is_there() const { return fs::exists(path_); }

  TestFolder folder_{"damage"};
  ColdRecord record_ = test_record(1, {100});
  std::string good_ = file_of(record_);
  fs::path path_ = record_path(folder_.cache(), record_.key);
  TestLog log_;
  ColdTier tier_{test_options(folder_.cache()), log_.log()};
};

TEST_F(ColdDamage, EveryChangedByteInFrontOfThePartsIsAMiss) {
  ASSERT_TRUE(hit(good_));
  for (std::size_t at = 0; at < 4096; ++at) {
    std::string bad = good_;
    bad[at] = static_cast<char>(bad[at] ^ 1 << at % 8);
    if (at == 8) bad[at] = 2;  // the next version
    ASSERT_FALSE(hit(bad)) << at;
    ASSERT_EQ(is_there(), at < kVersionEnd) << at << ": ours are removed, what may be another's stays";
  }
  EXPECT_EQ(log_.warnings(), 1u) << "one key, one warning";
  EXPECT_TRUE(hit(good_));
}

TEST_F(ColdDamage, AnyChangedByteOfAPartOrItsPaddingIsAMiss) {
  ASSERT_EQ(good_.size(), 8192u);
  for (std::size_t at = 4096; at < 8192; at += at < 4200 ? 1 : 61) {
    std::string bad = good_;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    ASSERT_FALSE(hit(bad)) << at;
    ASSERT_FALSE(is_there()) << at;
  }
}

TEST_F(ColdDamage, EveryOtherLengthIsAMiss) {
  for (std::size_t length = 0; length <= 4097; ++length) {
    ASSERT_FALSE(hit(good_.substr(0, length))) << length;
    ASSERT_FALSE(is_there()) << length;
  }
  for (const std::size_t length : {8191u, 8193u, 12288u}) {
    std::string bad = good_;
    bad.resize(length);
    ASSERT_FALSE(hit(bad)) << length;
  }
}

// Numbers that break size arithmetic, under a hash that is right.
TEST_F(ColdDamage, HugeSizesInAnIntactHeaderAreAMissAndAllocateNothing) {
  const std::size_t signature = record_.signature.size(),
                    table = 64 + 80 + signature + 4 * record_.tokens.size() + record_.metadata.size();
  struct Field {
    std::size_t at, width;
  };
  for (const Field& field : {Field{12, 4}, Field{16, 8}, Field{128, 4}, Field{132, 4}, Field{136, 4},
                             Field{140, 4}, Field{table, 8}, Field{table + 8, 8}})
    for (const std::uint64_t value : {0ull, 1ull, 4095ull, 4097ull, 8192ull, 0x7fffffffull, 0xffffffffull,
                                      1ull << 62, 1ull << 63, ~4095ull, ~0ull}) {
      std::string bad = good_;
      std::memcpy(bad.data() + field.at, &value, field.width);
      if (bad == good_ || bad.substr(16, 8) != good_.substr(16, 8)) {
        ASSERT_EQ(hit(bad), bad == good_);
        continue;
      }
      seal_front(std::as_writable_bytes(std::span(bad)).first(4096));
      ASSERT_FALSE(hit(bad)) << field.at << " " << value;
    }
}

TEST_F(ColdDamage, ADamagedFileIsWrittenOverByTheNextPut) {
  std::string bad = good_;
  bad[100] ^= 1;
  write_bytes(path_, bad);
  tier_.put(record_);
  tier_.flush();
  EXPECT_TRUE(holds(tier_, record_));
}

TEST_F(ColdDamage, AFileUnderAnotherNameIsIgnoredAndStays) {
  const ColdRecord other = test_record(2);
  const fs::path renamed = record_path(folder_.cache(), other.key);
  write_bytes(renamed, good_);
  EXPECT_FALSE(tier_.contains(other.key, kSignature));
  EXPECT_FALSE(holds(tier_, other));
  EXPECT_EQ(bytes_of(renamed), good_);
  EXPECT_EQ(log_.warnings(), 1u);
  EXPECT_NE(log_.text().find(record_.key.hex()), std::string::npos);
}

TEST_F(ColdDamage, ForeignFilesStayWhateverHappensAroundThem) {
  std::string newer = good_;
  newer[8] = 2;
  const auto put_and_ask = [&] {
    EXPECT_FALSE(tier_.contains(record_.key, kSignature));
    EXPECT_FALSE(holds(tier_, record_));
    tier_.put(record_);
    tier_.flush();
    EXPECT_FALSE(tier_.contains(record_.key, kSignature));
  };
  for (const std::string& foreign : {std::string("my notes"), newer, std::string(8192, '\0')}) {
    write_bytes(path_, foreign);
    put_and_ask();
    EXPECT_EQ(bytes_of(path_), foreign);
  }
  fs::remove(path_);
  write_bytes(path_ / "inside", "x");
  put_and_ask();
  EXPECT_EQ(bytes_of(path_ / "inside"), "x");
  fs::remove_all(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  put_and_ask();
  fs::remove(path_);
  write_bytes(folder_.path() / "outside", good_);
  fs::create_symlink(folder_.path() / "outside", path_);
  put_and_ask();
  EXPECT_EQ(bytes_of(folder_.path() / "outside"), good_);
}

TEST_F(ColdDamage, OtherFilesInTheFolderStay) {
  const std::string hex = record_.key.hex();
  const fs::path cache = folder_.cache();
  const std::vector<fs::path> foreign = {
      cache / "notes.txt",
      cache / "ab" / "notes.kv",
      cache / "ab" / ".notes.tmp",
      cache / hex.substr(0, 2) / (hex + ".kv.bak"),
      cache / hex.substr(0, 2) / ("." + hex + ".abcdef"),  // no start of ours
      cache / "zz" / (hex + ".kv"),
      cache / "abc" / (hex + ".kv")};
  for (const fs::path& file : foreign) write_bytes(file, "mine");
  ColdTier small(test_options(cache, cap_for(8192 + 100)), {});  // with the notes
  for (int i = 0; i < 3; ++i) small.put(test_record(i));
  small.flush();
  for (const fs::path& file : foreign) EXPECT_EQ(bytes_of(file), "mine") << file;
  EXPECT_EQ(small.stats().entries, 1u);
}

// A foreign file that replaced one of ours is not evicted along with the row.
TEST_F(ColdDamage, EvictionLooksAtTheFileFirst) {
  ColdTier small(test_options(folder_.cache(), cap_for(8192)), {});
  small.put(record_);
  small.flush();
  fs::remove(path_);
  write_bytes(path_, "mine");
  small.put(test_record(2));
  small.flush();
  EXPECT_TRUE(holds(small, test_record(2)));
  EXPECT_EQ(small.stats().entries, 1u);
  EXPECT_EQ(bytes_of(path_), "mine");
}

// --- the index

class ColdIndexLoss : public ::testing::Test {
 protected:
  static constexpr int kRecords = 4;
  static constexpr int kOrder[kRecords] = {1, 3, 0, 2};  // of use, oldest first
  void SetUp() override {
    ColdTier tier(test_options(folder_.cache()), {});
    for (int i = 0; i < kRecords; ++i) tier.put(test_record(i));
    tier.flush();
    for (int i = 0; i < kRecords; ++i) {
      const auto time = fs::file_time_type::clock::now() - std::chrono::hours(10 - i);
      fs::last_write_time(record_path(folder_.cache(), test_key(kOrder[i])), time);
    }
  }
  void expect_recovery() {
    TestLog log;
    const std::uint64_t each = record_bytes(test_record(0));
    ColdTier tier(test_options(folder_.cache(), cap_for(kRecords * each)), log.log());
    tier.flush();
    EXPECT_EQ(tier.stats().entries, 4u);
    EXPECT_EQ(tier.stats().bytes, kRecords * each);
    for (int i = 0; i < kRecords; ++i) {
      for (int j = i; j < kRecords; ++j)
        EXPECT_TRUE(tier.contains(test_key(kOrder[j]), kSignature)) << i << j;
      tier.put(test_record(20 + i));
      tier.flush();
      EXPECT_FALSE(tier.contains(test_key(kOrder[i]), kSignature))
          << "the order of use comes from the files' times";
    }
  }

  TestFolder folder_{"index"};
  fs::path index_ = folder_.cache() / "index.v1.sqlite";
};

TEST_F(ColdIndexLoss, ADeletedIndexIsMadeAgain) {
  fs::remove(index_);
  expect_recovery();
}

TEST_F(ColdIndexLoss, GarbageIsReplaced) {
  for (const std::size_t size : {1u, 100u, 4096u, 50000u}) {
    const auto garbage = test_bytes(size, size);
    write_bytes(index_, {reinterpret_cast<const char*>(garbage.data()), size});
    TestLog log;
    ColdTier tier(test_options(folder_.cache()), log.log());
    tier.flush();
    EXPECT_EQ(tier.stats().entries, 4u) << size;
    EXPECT_EQ(log.warnings(), size == 1 ? 0u : 1u)
        << size << ": SQLite takes a single byte for an empty file";
  }
  write_bytes(index_, "SQLite format 3");
  expect_recovery();
}

TEST_F(ColdIndexLoss, PagesOverwrittenInPlaceAreSurvived) {
  const std::string good = bytes_of(index_);
  ASSERT_GE(good.size(), 8192u);
  std::mt19937_64 random(5);
  std::printf("seed 5\n");
  for (int round = 0; round < 60; ++round) {
    std::string bad = good;
    for (int i = 0; i < 40; ++i) bad[random() % bad.size()] = static_cast<char>(random());
    if (round % 3 == 0) bad.resize(random() % bad.size());
    ColdIndex::erase(index_);
    write_bytes(index_, bad);
    ColdTier tier(test_options(folder_.cache()), {});
    for (int i = 0; i < kRecords; ++i) ASSERT_TRUE(holds(tier, test_record(i))) << round;
    tier.put(test_record(10 + round % 2));
    tier.flush();
    ASSERT_TRUE(holds(tier, test_record(10 + round % 2))) << round;
  }
}

TEST_F(ColdIndexLoss, AnotherProgramsDatabaseIsReplaced) {
  ColdIndex::erase(index_);
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(index_.c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, "CREATE TABLE entries(a, b)", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(db);
  expect_recovery();
}

TEST_F(ColdIndexLoss, RowsWithoutFilesAndFilesWithoutRowsAreSetRight) {
  const fs::path moved = record_path(folder_.cache(), test_key(1));
  fs::remove(moved);
  write_bytes(record_path(folder_.cache(), test_key(7)), file_of(test_record(7)));
  ColdTier tier(test_options(folder_.cache()), {});
  tier.flush();
  EXPECT_EQ(tier.stats().entries, 4u);
  EXPECT_EQ(tier.stats().bytes, 4 * record_bytes(test_record(0)));
  EXPECT_TRUE(holds(tier, test_record(7)));
}

TEST_F(ColdIndexLoss, AnIndexDeletedWhileRunningIsNoticed) {
  ColdTier tier(test_options(folder_.cache()), {});
  tier.flush();
  ColdIndex::erase(index_);
  tier.put(test_record(9));
  tier.flush();
  EXPECT_EQ(tier.stats().entries, 5u);
  EXPECT_TRUE(fs::exists(index_));
}

TEST_F(ColdIndexLoss, AnIndexDeletedInTheMiddleOfAWriteIsMadeAgain) {
  TestLog log;
  bool is_deleted = false;
  ColdOptions options = test_options(folder_.cache());
  options.hooks.after = [&](ColdStep done) {
    if (done == ColdStep::parts_written && !std::exchange(is_deleted, true)) ColdIndex::erase(index_);
  };
  ColdTier tier(options, log.log());
  tier.put(test_record(9));
  tier.flush();
  EXPECT_TRUE(holds(tier, test_record(9)));
  EXPECT_EQ(tier.stats().entries, 5u);
  EXPECT_EQ(log.text(), "");
}

// A page of a mapped file that was cut short kills whoever looks at it.
TEST_F(ColdIndexLoss, FilesOfTheIndexMayBeCutShortWhileItIsOpen) {
  for (const char* end : {"", "-shm", "-wal", "-journal"}) {
    const pid_t child = ::fork();
    if (child == 0) {
      ColdTier tier(test_options(folder_.cache()), {});
      tier.put(test_record(20));
      tier.flush();
      std::error_code ignored;
      fs::resize_file(index_.string() + end, 0, ignored);
      for (std::uint64_t i = 30; i < 40; ++i) tier.put(test_record(i));
      tier.flush();
      if (bytes_of("/proc/self/maps").find("index.v1.sqlite") != std::string::npos) ::_exit(2);
      ::_exit(holds(tier, test_record(0)) && holds(tier, test_record(39)) ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << "killed by signal " << WTERMSIG(status) << ", " << end;
    EXPECT_EQ(WEXITSTATUS(status), 0) << end;
  }
}

// To open it as it is would map a file.
TEST_F(ColdIndexLoss, AnIndexWithAWriteAheadLogIsMadeAgain) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(index_.c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, "PRAGMA journal_mode = WAL", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(db);
  TestLog log;
  ColdTier tier(test_options(folder_.cache()), log.log());
  tier.flush();
  EXPECT_EQ(tier.stats().entries, 4u);
  EXPECT_EQ(log.warnings(), 1u);
  EXPECT_FALSE(fs::exists(index_.string() + "-shm"));
  EXPECT_EQ(bytes_of(index_).substr(18, 2), "\1\1");
}

// --- the disk

TEST(ColdDisk, AVanishedFolderIsAMissAndTheNextPutMakesItAgain) {
  const TestFolder folder("vanish");
  TestLog log;
  ColdTier tier(test_options(folder.cache()), log.log());
  tier.put(test_record(1));
  tier.flush();
  fs::remove_all(folder.cache());
  EXPECT_FALSE(holds(tier, test_record(1)));
  tier.touch(test_key(1));
  tier.put(test_record(2));
  tier.flush();
  EXPECT_TRUE(holds(tier, test_record(2)));
  EXPECT_EQ(tier.stats().entries, 1u);
  fs::remove_all(folder.path());  // now with the folder above it
  tier.put(test_record(3));
  tier.put(test_record(4));
  tier.flush();
  EXPECT_FALSE(tier.contains(test_key(3), kSignature));
  EXPECT_EQ(log.warnings(), 1u) << log.text();
}

TEST(ColdDisk, TheFolderMayVanishAtEveryStepOfAWrite) {
  for (int step = 0; step <= static_cast<int>(ColdStep::folder_synced); ++step) {
    const TestFolder folder("vanish_step");
    ColdOptions options = test_options(folder.cache());
    options.hooks.after = [&](ColdStep done) {
      if (static_cast<int>(done) == step) fs::remove_all(folder.cache());
    };
    ColdTier tier(options, {});
    tier.put(test_record(1));
    tier.flush();
    EXPECT_FALSE(holds(tier, test_record(1))) << step;
    tier.put(test_record(2));
    tier.flush();
    EXPECT_EQ(tier.stats().written + tier.stats().failed, 2u);
  }
}

TEST(ColdDisk, AFullDiskIsSaidOnceAndLeavesNothing) {
  const TestFolder folder("full");
  TestLog log;
  std::atomic<int> writes_left = 1;
  ColdOptions options = test_options(folder.cache());
  options.hooks.write = [&](int fd, const void* data, std::size_t size) -> ssize_t {
    if (writes_left-- > 0) return ::write(fd, data, std::min<std::size_t>(size, 1000));
    errno = ENOSPC;
    return -1;
  };
  ColdTier tier(options, log.log());
  for (int i = 0; i < 3; ++i) tier.put(test_record(i));
  tier.flush();
  EXPECT_EQ(tier.stats().failed, 3u);
  EXPECT_EQ(files_below(folder.cache()).size(), 0u);
  EXPECT_EQ(log.warnings(), 1u);
  EXPECT_NE(log.text().find("No space left"), std::string::npos) << log.text();
  writes_left = 1000;  // in pieces of 1000 bytes
  tier.put(test_record(5));
  tier.flush();
  EXPECT_TRUE(holds(tier, test_record(5)));
}

TEST(ColdDisk, ADiskThatIsFullNowAndThenDoesNotFillTheLog) {
  const TestFolder folder("flaps");
  TestLog log;
  std::atomic<bool> is_full = false;
  std::atomic<int> minutes = 0;
  ColdOptions options = test_options(folder.cache());
  options.hooks.write = [&](int fd, const void* data, std::size_t size) -> ssize_t {
    if (!is_full) return ::write(fd, data, size);
    errno = ENOSPC;
    return -1;
  };
  options.hooks.now = [&] { return std::chrono::steady_clock::time_point(std::chrono::minutes(minutes)); };
  ColdTier tier(options, log.log());
  for (int i = 0; i < 40; ++i) {
    is_full = i % 2 == 0;
    minutes = i / 2;
    tier.put(test_record(static_cast<std::uint64_t>(i)));
    tier.flush();
  }
  EXPECT_EQ(tier.stats().failed, 20u);
  EXPECT_EQ(log.warnings(), 2u) << "20 minutes: " << log.text();
}

// Root may write anywhere: a child gives up its rights first.
TEST(ColdDisk, AReadOnlyFolderServesWhatItHolds) {
  const TestFolder folder("readonly");
  {
    ColdTier tier(test_options(folder.cache()), {});
    tier.put(test_record(1));
  }
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0) {
      for (const auto& item : fs::recursive_directory_iterator(folder.path()))
        if (::chown(item.path().c_str(), 65534, 65534) != 0) ::_exit(10);
      if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(11);
    }
    for (const auto& item : fs::recursive_directory_iterator(folder.cache()))
      if (::chmod(item.path().c_str(), item.is_directory() ? 0500 : 0400) != 0) ::_exit(12);
    if (::chmod(folder.cache().c_str(), 0500) != 0) ::_exit(13);
    TestLog log;
    ColdTier tier(test_options(folder.cache()), log.log());
    const bool is_hit = holds(tier, test_record(1));
    tier.put(test_record(2));
    tier.touch(test_key(1));
    tier.flush();
    if (!is_hit) ::_exit(1);
    if (tier.stats().failed != 1) ::_exit(2);
    ::_exit(log.warnings() == 2 ? 0 : 3);  // the folder, and the first thing that failed
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  for (const auto& item : fs::recursive_directory_iterator(folder.path()))
    if (item.is_directory()) ::chmod(item.path().c_str(), 0700);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(ColdDisk, AFolderThatOthersMayWriteIsAWarning) {
  const TestFolder folder("open");
  fs::create_directories(folder.cache());
  ASSERT_EQ(::chmod(folder.cache().c_str(), 0777), 0);
  TestLog log;
  const ColdTier tier(test_options(folder.cache()), log.log());
  EXPECT_NE(log.text().find("other users"), std::string::npos);
}

}  // namespace
}  // namespace godwit::cache
