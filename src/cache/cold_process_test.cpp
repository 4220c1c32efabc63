// The cold tier with several processes: killed ones, living ones, and two at once.
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <optional>

#include "cache/cold_test_support.h"
#include "cache/cold_tier.h"

namespace godwit::cache {
namespace {

constexpr int kLastStep = static_cast<int>(ColdStep::folder_synced);

// Runs `work` in a child without the parent's tests; returns its wait status.
template <typename Work>
pid_t start(Work work) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  work();
  ::_exit(0);
}

int wait_for(pid_t child) {
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

ino_t inode_of(const fs::path& file) {
  struct stat info {};
  EXPECT_EQ(::stat(file.c_str(), &info), 0);
  return info.st_ino;
}

std::size_t temps_below(const fs::path& folder) {
  std::size_t count = 0;
  for (const fs::path& file : files_below(folder)) count += is_temp_name(file.filename().string());
  return count;
}

// With room for two records, of which the older must leave.
TEST(ColdProcess, KilledAfterAnyStepLeavesAWholeRecordOrNone) {
  const std::uint64_t cap = cap_for(2 * record_bytes(test_record(0, {5000})));
  for (int step = 0; step <= kLastStep; ++step) {
    SCOPED_TRACE(step);
    const TestFolder folder("kill");
    {
      ColdTier tier(test_options(folder.cache(), cap), {});
      for (int i = 0; i < 2; ++i) tier.put(test_record(i, {5000}));
    }
    const int status = wait_for(start([&] {
      ColdOptions options = test_options(folder.cache(), cap);
      options.hooks.after = [&](ColdStep done) {
        if (static_cast<int>(done) == step) ::kill(::getpid(), SIGKILL);
      };
      ColdTier tier(options, {});
      tier.put(test_record(2, {5000}));
      tier.flush();
    }));
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    const bool is_visible = step >= static_cast<int>(ColdStep::renamed);
    EXPECT_EQ(fs::exists(record_path(folder.cache(), test_key(2))), is_visible);
    EXPECT_EQ(temps_below(folder.cache()), is_visible ? 0u : 1u);

    TestLog log;
    ColdTier tier(test_options(folder.cache(), cap), log.log());
    EXPECT_EQ(holds(tier, test_record(2, {5000})), is_visible);
    tier.flush();
    EXPECT_EQ(temps_below(folder.cache()), 0u);
    EXPECT_EQ(tier.stats().entries, files_below(folder.cache()).size());
    EXPECT_LE(tier.stats().bytes, cap);
    EXPECT_TRUE(holds(tier, test_record(1, {5000})));
    tier.put(test_record(2, {5000}));
    tier.flush();
    EXPECT_TRUE(holds(tier, test_record(2, {5000})));
    EXPECT_EQ(log.text(), "") << "a killed process is nothing to warn of";
  }
}

TEST(ColdProcess, TemporaryFilesOfALivingProcessStay) {
  const TestFolder folder("alive");
  int to_parent[2], to_child[2];
  ASSERT_EQ(::pipe(to_parent), 0);
  ASSERT_EQ(::pipe(to_child), 0);
  const pid_t child = start([&] {
    ColdOptions options = test_options(folder.cache());
    options.hooks.after = [&](ColdStep done) {
      char byte = 0;
      if (done != ColdStep::parts_written) return;
      if (::write(to_parent[1], "x", 1) != 1 || ::read(to_child[0], &byte, 1) != 1) ::_exit(1);
    };
    ColdTier tier(options, {});
    tier.put(test_record(1));
    tier.flush();
  });
  char byte = 0;
  ASSERT_EQ(::read(to_parent[0], &byte, 1), 1);
  {
    ColdTier tier(test_options(folder.cache()), {});
    tier.flush();
    EXPECT_EQ(temps_below(folder.cache()), 1u);
  }
  ASSERT_EQ(::write(to_child[1], "x", 1), 1);
  EXPECT_EQ(wait_for(child), 0);
  for (const int fd : {to_parent[0], to_parent[1], to_child[0], to_child[1]}) ::close(fd);
  ColdTier tier(test_options(folder.cache()), {});
  EXPECT_TRUE(holds(tier, test_record(1)));
}

TEST(ColdProcess, TwoAtOnceShareTheFolder) {
  const TestFolder folder("two");
  const std::uint64_t cap = 1 << 30;
  const auto work = [&](int from, int to) {
    TestLog log;
    {
      ColdTier tier(test_options(folder.cache(), cap), log.log());
      for (int i = from; i < to; ++i) tier.put(test_record(i));
      for (int i = from; i < to; ++i) holds(tier, test_record(i));
    }
    if (log.warnings() != 0) ::_exit(1);
  };
  const pid_t first = start([&] { work(0, 40); }), second = start([&] { work(20, 60); });
  EXPECT_EQ(wait_for(first), 0);
  EXPECT_EQ(wait_for(second), 0);
  ColdTier tier(test_options(folder.cache(), cap), {});
  tier.flush();
  for (int i = 0; i < 60; ++i) EXPECT_TRUE(holds(tier, test_record(i))) << i;
  EXPECT_EQ(tier.stats().entries, 60u);
  EXPECT_EQ(files_below(folder.cache()).size(), 60u);
}

TEST(ColdProcess, TwoAtOnceKeepOneCap) {
  const TestFolder folder("two_cap");
  const std::uint64_t cap = cap_for(10 * record_bytes(test_record(0)));
  const auto work = [&](int from) {
    ColdTier tier(test_options(folder.cache(), cap), {});
    for (int i = from; i < from + 40; ++i) tier.put(test_record(i));
  };
  const pid_t first = start([&] { work(0); }), second = start([&] { work(20); });
  EXPECT_EQ(wait_for(first), 0);
  EXPECT_EQ(wait_for(second), 0);
  const auto files = files_below(folder.cache());
  EXPECT_EQ(files.size(), 10u) << "before any start could put it right";
  ColdTier tier(test_options(folder.cache(), cap), {});
  tier.flush();
  EXPECT_EQ(tier.stats().entries, 10u);
  EXPECT_EQ(tier.stats().evicted, 0u);
}

// Both find garbage, or nothing, and make the index at the same moment.
TEST(ColdProcess, TwoThatStartAtOnceAgreeOnAnIndex) {
  for (int round = 0; round < 6; ++round) {
    const TestFolder folder("two_start");
    if (round % 2) write_bytes(folder.cache() / "index.v1.sqlite", std::string(5000, 'x'));
    const auto work = [&](int from) {
      ColdTier tier(test_options(folder.cache()), {});
      for (int i = from; i < from + 5; ++i) tier.put(test_record(i));
    };
    const pid_t first = start([&] { work(0); }), second = start([&] { work(5); });
    EXPECT_EQ(wait_for(first), 0);
    EXPECT_EQ(wait_for(second), 0);
    ColdTier tier(test_options(folder.cache()), {});
    tier.flush();
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(holds(tier, test_record(i))) << round << " " << i;
    EXPECT_EQ(tier.stats().entries, 10u) << round;
  }
}

// One finds garbage; before it can delete that, the other has done so and writes to a new index.
TEST(ColdProcess, AnIndexThatAnotherMadeMeanwhileStays) {
  const TestFolder folder("two_repair");
  const fs::path index = folder.cache() / "index.v1.sqlite";
  write_bytes(index, std::string(5000, 'x'));
  std::optional<ColdTier> other;
  ino_t inode = 0;
  const Log log([&](LogLevel level, std::string_view text) {
    if (level < LogLevel::warning || other) return;
    EXPECT_NE(text.find("the index is made again"), std::string_view::npos) << text;
    other.emplace(test_options(folder.cache()), Log());
    other->put(test_record(1));
    other->flush();
    inode = inode_of(index);
  });
  {
    ColdTier tier(test_options(folder.cache()), log);
    tier.put(test_record(2));
    tier.flush();
    EXPECT_EQ(tier.stats().entries, 2u);
    EXPECT_EQ(tier.stats().failed, 0u);
  }
  ASSERT_TRUE(other);
  EXPECT_EQ(inode_of(index), inode);
  other->put(test_record(3));
  other->flush();
  EXPECT_EQ(other->stats().entries, 3u);
}

}  // namespace
}  // namespace godwit::cache
