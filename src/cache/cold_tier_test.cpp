// What the cold tier stores and keeps, with nothing wrong on the disk.
#include "cache/cold_tier.h"

#include <sqlite3.h>
#include <sys/stat.h>

#include <condition_variable>
#include <thread>

#include "base/error.h"
#include "cache/cold_test_support.h"

namespace godwit::cache {
namespace {

mode_t mode_of(const fs::path& path) {
  struct stat info {};
  EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
  return info.st_mode & 0777;
}

TEST(ColdTier, GivesBackEveryByteAlsoAfterARestart) {
  const TestFolder folder("restart");
  const std::vector<ColdRecord> records = {test_record(1, {5000, 4096, 0, 1}), test_record(2, {}),
                                           test_record(3, {(3 << 20) + 17}, "another signature")};
  TestLog log;
  {
    ColdTier tier(test_options(folder.cache()), log.log());
    for (const auto& record : records) EXPECT_FALSE(tier.contains(record.key, record.signature));
    for (const auto& record : records) tier.put(record);
    tier.flush();
    for (const auto& record : records) EXPECT_TRUE(holds(tier, record));
    EXPECT_EQ(tier.stats().written, 3u);
  }
  ColdTier tier(test_options(folder.cache()), log.log());
  for (const auto& record : records) EXPECT_TRUE(holds(tier, record));
  tier.flush();
  const ColdStats stats = tier.stats();
  EXPECT_EQ(stats.entries, 3u);
  EXPECT_EQ(stats.hits, 3u);
  std::uint64_t bytes = 0;
  for (const auto& file : files_below(folder.cache())) bytes += fs::file_size(file);
  EXPECT_EQ(stats.bytes, bytes);
  EXPECT_EQ(log.text(), "");
}

TEST(ColdTier, TheFileIsLaidOutAsDocumented) {
  const ColdRecord record = test_record(7, {5000, 3});
  const std::string file = file_of(record);
  ASSERT_EQ(file.size(), 4096u + 8192u + 4096u);
  EXPECT_EQ(file.substr(0, 8), "GODWITKV");
  EXPECT_EQ(std::memcmp(file.data() + 64, record.key.bytes.data(), 32), 0);
  EXPECT_EQ(std::memcmp(file.data() + 4096, record.parts[0].bytes.data(), 5000), 0);
  EXPECT_EQ(std::memcmp(file.data() + 12288, record.parts[1].bytes.data(), 3), 0);
  EXPECT_NE(
      file.find(record.signature + std::string("\7\0\0\0\xff\xff\xff\xff\xff\xff\xff\x7f", 12) + "meta"),
      std::string::npos);
}

TEST(ColdTier, TheHashIsXxh3) {
  // The value that the xxHash project publishes for no input and seed 0.
  std::string hex;
  for (const std::byte byte : ColdHasher().digest())
    hex += fmt::format("{:02x}", static_cast<unsigned>(byte));
  EXPECT_EQ(hex, "99aa06d3014798d86001c324468d497f");
}

TEST(ColdTier, NobodyElseMayReadTheFiles) {
  const TestFolder folder("modes");
  const mode_t mask = ::umask(0);
  ColdTier tier(test_options(folder.cache()), {});
  tier.put(test_record(1));
  tier.flush();
  ::umask(mask);
  EXPECT_EQ(mode_of(folder.cache()), 0700u);
  for (const auto& item : fs::recursive_directory_iterator(folder.cache()))
    EXPECT_EQ(mode_of(item.path()), item.is_directory() ? 0700u : 0600u) << item.path();
}

TEST(ColdTier, AnotherSignatureOrOtherSizesAreAMissAndTheEntryStays) {
  const TestFolder folder("signature");
  TestLog log;
  ColdTier tier(test_options(folder.cache()), log.log());
  const ColdRecord record = test_record(1, {100, 200});
  tier.put(record);
  tier.flush();
  EXPECT_FALSE(tier.contains(record.key, kSignature + ";adapter=x"));
  EXPECT_FALSE(tier.head(record.key, ""));
  std::vector<std::byte> a(100), b(201);
  const std::array<std::span<std::byte>, 2> wrong = {a, b};
  EXPECT_FALSE(tier.read(record.key, "x", wrong));
  EXPECT_FALSE(tier.read(record.key, kSignature, wrong));
  EXPECT_FALSE(tier.read(record.key, kSignature, std::span(wrong).first(1)));
  EXPECT_TRUE(holds(tier, record));
  EXPECT_EQ(log.text(), "");
}

TEST(ColdTier, TheCapHoldsAndTheLeastRecentlyUsedLeave) {
  const TestFolder folder("lru");
  const std::uint64_t each = record_bytes(test_record(0));
  ColdTier tier(test_options(folder.cache(), cap_for(4 * each + each / 2)), {});
  for (int i = 0; i < 4; ++i) tier.put(test_record(i, {100}, i % 2 ? "s1" : "s2"));
  tier.flush();
  EXPECT_TRUE(holds(tier, test_record(0, {100}, "s2")));  // a hit: newer than 1, 2, 3
  tier.touch(test_key(1));
  tier.put(test_record(4));
  tier.put(test_record(5));
  tier.flush();
  const auto present = [&](int i, const char* signature) { return tier.contains(test_key(i), signature); };
  EXPECT_FALSE(present(2, "s2"));
  EXPECT_FALSE(present(3, "s1"));
  EXPECT_TRUE(present(0, "s2") && present(1, "s1") && tier.contains(test_key(4), kSignature));
  tier.put(test_record(0, {100}, "s2"));  // present: used again
  tier.put(test_record(6));
  tier.put(test_record(7));
  tier.flush();
  EXPECT_FALSE(present(1, "s1") || tier.contains(test_key(4), kSignature)) << "the oldest uses by now";
  EXPECT_TRUE(present(0, "s2"));
  const ColdStats stats = tier.stats();
  EXPECT_EQ(stats.evicted, 4u);
  EXPECT_EQ(stats.present, 1u);
  EXPECT_EQ(stats.entries, 4u);
  EXPECT_EQ(stats.bytes, 4 * each);
  EXPECT_EQ(files_below(folder.cache()).size(), 4u);
}

TEST(ColdTier, ClearingEmptiesTheFolderBehindWhatIsQueuedAndItFillsAgain) {
  const TestFolder folder("clear");
  ColdTier tier(test_options(folder.cache(), cap_for(std::uint64_t{1} << 30)), {});
  for (int i = 0; i < 4; ++i) tier.put(test_record(i, {100}, i % 2 ? "s1" : "s2"));
  const std::uint64_t losses = tier.losses();
  tier.clear();
  tier.flush();
  EXPECT_TRUE(files_below(folder.cache()).empty());
  EXPECT_EQ(tier.stats().entries, 0u);
  EXPECT_GT(tier.losses(), losses) << "what was put before is to be put again";
  tier.put(test_record(1, {100}, "s1"));
  tier.flush();
  EXPECT_TRUE(holds(tier, test_record(1, {100}, "s1")));
}

// Record `number` behind record `number - 1`; 1 is the first.
ColdRecord chained(int number) {
  ColdRecord record = test_record(static_cast<std::uint64_t>(number));
  record.follows_record = number > 1;
  if (number > 1) record.parent = test_key(static_cast<std::uint64_t>(number) - 1);
  return record;
}

// Which of records 1 to 9 are there, such as "124".
std::string present_in(ColdTier& tier) {
  std::string found;
  for (int i = 1; i <= 9; ++i)
    if (holds(tier, i < 8 ? chained(i) : test_record(static_cast<std::uint64_t>(i)))) found += std::to_string(i);
  return found;
}

TEST(ColdTier, AChainLosesItsEndFirst) {
  const TestFolder folder("chain");
  ColdTier tier(test_options(folder.cache(), cap_for(5 * record_bytes(test_record(0)))), {});
  for (int i = 1; i <= 5; ++i) tier.put(chained(i));
  tier.flush();
  EXPECT_EQ(present_in(tier), "12345");
  for (const int i : {3, 4, 5}) tier.touch(test_key(static_cast<std::uint64_t>(i)));  // its end is what was used last
  tier.put(test_record(8));
  tier.put(test_record(9));
  tier.flush();
  EXPECT_EQ(present_in(tier), "12389");
  EXPECT_EQ(tier.stats().evicted, 2u);
}

TEST(ColdTier, AChainAboveTheCapKeepsItsBeginning) {
  const TestFolder folder("chain_cap");
  TestLog log;
  const ColdOptions options = test_options(folder.cache(), cap_for(3 * record_bytes(test_record(0))));
  {
    ColdTier tier(options, log.log());
    for (int i = 1; i <= 6; ++i) tier.put(chained(i));
    tier.flush();
    EXPECT_EQ(present_in(tier), "123");
    EXPECT_EQ(tier.stats().dropped, 3u) << "one without room, and what follows it";
  }
  ColdTier tier(options, log.log());
  tier.put(test_record(9));
  tier.flush();
  EXPECT_EQ(present_in(tier), "129") << "also after a restart";
  EXPECT_EQ(log.text(), "");
}

// What dead processes leave: a file that nobody counts is counted as soon as somebody puts it again.
TEST(ColdTier, AFileWithoutARowIsTakenInByThePutOfItsRecord) {
  const TestFolder folder("rowless");
  ColdTier tier(test_options(folder.cache()), {});
  tier.flush();
  write_bytes(record_path(folder.cache(), test_key(1)), file_of(chained(1)));
  tier.put(chained(1));
  tier.put(chained(2));
  tier.flush();
  EXPECT_EQ(present_in(tier), "12");
  EXPECT_EQ(tier.stats().entries, 2u);
}

TEST(ColdTier, TheCapCountsWhatLiesBesideTheRecords) {
  const TestFolder folder("beside");
  const std::uint64_t each = record_bytes(test_record(0)), cap = cap_for(5 * each);
  write_bytes(folder.cache() / "hashes.v1.json", std::string(3 * each, ' '));
  ColdTier tier(test_options(folder.cache(), cap), {});
  for (int i = 1; i <= 6; ++i) tier.put(test_record(static_cast<std::uint64_t>(i)));
  tier.flush();
  EXPECT_EQ(tier.stats().entries, 2u);
  std::uint64_t all = 0;
  for (const auto& item : fs::recursive_directory_iterator(folder.cache()))
    if (item.is_regular_file()) all += item.file_size();
  EXPECT_LE(all, cap);
}

TEST(ColdTier, ARecordAboveTheCapIsRefusedAndEvictsNothing) {
  const TestFolder folder("large");
  TestLog log;
  ColdTier tier(test_options(folder.cache(), cap_for(20000)), log.log());
  tier.put(test_record(1));
  tier.put(test_record(2, {30000}));
  tier.flush();
  EXPECT_TRUE(holds(tier, test_record(1)));
  EXPECT_EQ(tier.stats().failed, 1u);
  EXPECT_EQ(log.warnings(), 1u);
}

TEST(ColdTier, ASmallerCapTakesEffectAtTheNextStart) {
  const TestFolder folder("shrink");
  const std::uint64_t each = record_bytes(test_record(0));
  {
    ColdTier tier(test_options(folder.cache()), {});
    for (int i = 0; i < 6; ++i) tier.put(test_record(i));
  }
  ColdTier tier(test_options(folder.cache(), cap_for(2 * each)), {});
  tier.flush();
  EXPECT_TRUE(holds(tier, test_record(4)) && holds(tier, test_record(5)));
  EXPECT_EQ(files_below(folder.cache()).size(), 2u);
}

// Holds the writer's thread in its hook until opened.
class Gate {
 public:
  ColdHooks hooks() {
    return {.after =
                [this](ColdStep step) {
                  std::unique_lock lock(mutex_);
                  if (step == ColdStep::temp_made) is_reached_ = true;
                  changed_.notify_all();
                  changed_.wait(lock, [this] { return is_open_; });
                },
            .write = {}};
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_reached_; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_reached_ = false, is_open_ = false;
};

TEST(ColdTier, AFullQueueTakesNothingMoreKeepsWhatItHasAndNeverBlocks) {
  const TestFolder folder("queue");
  Gate gate;
  ColdOptions options = test_options(folder.cache());
  options.queue_bytes = 3 * record_bytes(test_record(0));
  options.hooks = gate.hooks();
  ColdTier tier(options, {});
  EXPECT_TRUE(tier.put(test_record(0)));
  gate.wait();  // record 0 is in writing, and the writer stands still
  std::weak_ptr<const void> last;
  for (int i = 1; i <= 5; ++i) {
    ColdRecord record = test_record(i);
    if (i == 5) last = record.parts[0].owner;
    EXPECT_EQ(tier.put(std::move(record)), i <= 3) << i;
  }
  EXPECT_TRUE(tier.put(test_record(3))) << "queued already";
  EXPECT_FALSE(tier.put(test_record(6, {100000}))) << "above the bound alone";
  EXPECT_TRUE(last.expired()) << "what is not taken is not kept alive";
  EXPECT_EQ(tier.stats().dropped, 3u);
  EXPECT_EQ(tier.stats().queued_bytes, options.queue_bytes);
  gate.open();
  tier.flush();
  for (const int i : {0, 1, 2, 3}) EXPECT_TRUE(holds(tier, test_record(i))) << i;
  for (const int i : {4, 5, 6}) EXPECT_FALSE(tier.contains(test_key(i), kSignature)) << i;
  EXPECT_EQ(tier.stats().queued_bytes, 0u);
  EXPECT_TRUE(tier.put(test_record(4)));
}

TEST(ColdTier, TheEndWritesWhatIsQueued) {
  const TestFolder folder("end");
  std::weak_ptr<const void> owner;
  {
    ColdTier tier(test_options(folder.cache()), {});
    for (int i = 0; i < 20; ++i) {
      ColdRecord record = test_record(i);
      owner = record.parts[0].owner;
      tier.put(std::move(record));
    }
  }
  EXPECT_TRUE(owner.expired());
  ColdTier tier(test_options(folder.cache()), {});
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(holds(tier, test_record(i))) << i;
}

TEST(ColdTier, ManyThreadsMayAskWhileOneWrites) {
  const TestFolder folder("threads");
  ColdTier tier(test_options(folder.cache(), cap_for(30 * record_bytes(test_record(0)))), {});
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&tier, t] {
      for (int i = 0; i < 60; ++i) {
        tier.put(test_record(i % 40 + t));
        holds(tier, test_record(i % 40));
        tier.stats();
      }
    });
  for (std::thread& thread : threads) thread.join();
  tier.flush();
  EXPECT_LE(tier.stats().entries, 30u);
  EXPECT_EQ(tier.stats().entries, files_below(folder.cache()).size());
  EXPECT_EQ(tier.stats().damaged + tier.stats().failed, 0u);
}

TEST(ColdTier, ABusyIndexDelaysTheWriterAndNoReader) {
  const TestFolder folder("busy");
  ColdTier tier(test_options(folder.cache()), {});
  tier.put(test_record(1));
  tier.flush();
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open((folder.cache() / "index.v1.sqlite").c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  tier.put(test_record(2));
  EXPECT_TRUE(holds(tier, test_record(1)));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(tier.stats().written, 1u);
  ASSERT_EQ(sqlite3_exec(other, "COMMIT", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(other);
  tier.flush();
  EXPECT_TRUE(holds(tier, test_record(2)));
}

TEST(ColdTier, MisuseIsAnError) {
  const TestFolder folder("misuse");
  const auto code = [](auto call) {
    try {
      call();
    } catch (const Error& e) {
      return e.code();
    }
    return ErrorCode::internal;
  };
  EXPECT_EQ(code([&] { ColdTier(test_options(folder.cache(), 0), {}); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code([&] { ColdTier(test_options(""), {}); }), ErrorCode::invalid_argument);
  write_bytes(folder.path() / "file", "x");
  EXPECT_EQ(code([&] { ColdTier(test_options(folder.path() / "file"), {}); }), ErrorCode::io);
  EXPECT_EQ(code([&] { ColdTier(test_options(folder.path() / "file" / "below"), {}); }), ErrorCode::io);
  ColdTier tier(test_options(folder.cache()), {});
  ColdRecord tokens = test_record(1), text = test_record(1), parts = test_record(1);
  tokens.tokens.resize(65);
  text.metadata.resize(kColdMaxText + 1);
  parts.parts.resize(kColdMaxParts + 1);
  for (const ColdRecord& record : {tokens, text, parts})
    EXPECT_EQ(code([&] { tier.put(record); }), ErrorCode::invalid_argument);
  ColdRecord most = test_record(2, std::vector<std::size_t>(kColdMaxParts, 0));
  most.tokens.resize(64);
  most.metadata.resize(kColdMaxText);
  most.signature.resize(kColdMaxText);
  tier.put(most);
  tier.flush();
  EXPECT_TRUE(holds(tier, most)) << "the limits themselves are allowed";
}

}  // namespace
}  // namespace godwit::cache
