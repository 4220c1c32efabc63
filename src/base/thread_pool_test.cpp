#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <numeric>
#include <set>
#include <string>

#include "base/error.h"

namespace godwit {
namespace {

TEST(ThreadPool, runs_every_part_once_whatever_the_counts) {
  for (const int threads : {1, 2, 3, 5}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const int parts : {0, 1, 2, 3, 4, 7, 64, 1000}) {
      std::vector<int> calls(static_cast<std::size_t>(parts), 0);
      pool.run(parts, [&](int part) { calls[static_cast<std::size_t>(part)]++; });
      EXPECT_EQ(std::count(calls.begin(), calls.end(), 1), parts) << threads << " threads";
    }
  }
}

TEST(ThreadPool, what_parts_write_is_visible_to_the_caller_and_to_later_jobs) {
  ThreadPool pool(3);
  std::vector<std::uint64_t> values(50, 1);
  for (int round = 0; round < 2000; round++)
    pool.run(50, [&](int part) {
      // Reads what another thread may have written in the job before.
      values[static_cast<std::size_t>(part)] += static_cast<std::uint64_t>(round);
    });
  const std::uint64_t each = 1 + 1999ull * 2000 / 2;
  EXPECT_EQ(std::accumulate(values.begin(), values.end(), std::uint64_t{0}), 50 * each);
}

TEST(ThreadPool, wakes_workers_that_went_to_sleep) {
  ThreadPool pool(2);
  for (int round = 0; round < 20; round++) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // far past the spinning
    // Two parts that wait for each other: done only if both threads run.
    std::atomic<int> arrived{0};
    pool.run(2, [&](int) {
      arrived++;
      while (arrived < 2) std::this_thread::yield();
    });
    EXPECT_EQ(arrived, 2);
  }
}

TEST(ThreadPool, the_caller_sleeps_through_a_long_part_and_is_woken) {
  ThreadPool pool(2);
  std::atomic<int> arrived{0}, done{0};
  pool.run(2, [&](int part) {
    arrived++;
    while (arrived < 2) std::this_thread::yield();
    if (part == 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    done++;
  });
  EXPECT_EQ(done, 2);
}

TEST(ThreadPool, an_idle_thread_takes_parts_that_a_busy_one_has_not_begun) {
  ThreadPool pool(2);
  std::atomic<int> others{0};
  // Part 0 ends only when all others have: its thread owns parts 1 to 4 as well.
  pool.run(10, [&](int part) {
    if (part != 0) {
      others++;
      return;
    }
    while (others < 9) std::this_thread::yield();
  });
  EXPECT_EQ(others, 9);
}

TEST(ThreadPool, rethrows_the_exception_of_the_lowest_part_after_all_have_ended) {
  for (const int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    std::atomic<int> ended{0};
    try {
      pool.run(40, [&](int part) {
        ended++;
        if (part % 10 == 7) fail(ErrorCode::internal, "test", "part {}", part);
      });
      FAIL() << "nothing was thrown";
    } catch (const Error& e) {
      EXPECT_STREQ(e.what(), "[test] part 7");
    }
    EXPECT_EQ(ended, 40);
    ended = 0;
    pool.run(40, [&](int) { ended++; });  // the pool is as good as new
    EXPECT_EQ(ended, 40);
  }
}

TEST(ThreadPool, starts_and_stops_cleanly_also_unused) {
  for (int round = 0; round < 50; round++) {
    ThreadPool pool(1 + round % 4);
    if (round % 3 == 0) pool.run(3, [](int) {});
  }
  EXPECT_THROW(ThreadPool(0), Error);
  EXPECT_THROW(ThreadPool(-3), Error);
}

// A made-up root with /proc/self/cgroup and quota files.
class CpuAllowance : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    root_ = std::filesystem::temp_directory_path() / "godwit_cpu_allowance" / info->name();
    std::filesystem::remove_all(root_);
  }
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  std::filesystem::path root_;
};

TEST_F(CpuAllowance, without_a_quota_is_the_affinity_mask) {
  const int all = cpu_allowance(root_);
  EXPECT_GE(all, 1);
  write("proc/self/cgroup", "0::/a/b\n");
  write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(cpu_allowance(root_), all);
  write("proc/self/cgroup", "garbage\n\n1:2\n");
  EXPECT_EQ(cpu_allowance(root_), all);
}

TEST_F(CpuAllowance, is_bounded_by_the_smallest_quota_on_the_way_up) {
  write("proc/self/cgroup", "0::/a/b\n");
  write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  write("sys/fs/cgroup/a/cpu.max", "50000 100000\n");
  EXPECT_EQ(cpu_allowance(root_), 1);  // half a CPU is still one thread
  write("sys/fs/cgroup/a/cpu.max", "110000 100000\n");
  EXPECT_EQ(cpu_allowance(root_), std::min(2, cpu_allowance("/nowhere")));
}

TEST_F(CpuAllowance, reads_the_older_layout) {
  write("proc/self/cgroup", "5:memory:/x\n4:cpu,cpuacct:/x\n");
  write("sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "100000\n");
  write("sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpu_allowance(root_), 1);
  write("sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(cpu_allowance(root_), cpu_allowance("/nowhere"));
}

// A worker that comes late to the last job must not take the number that stops the pool for one more job and sleep on it.
TEST(ThreadPool, ends_right_behind_a_job) {
  for (int round = 0; round < 2000; round++) {
    ThreadPool pool(3);
    std::atomic<int> ran{0};
    pool.run(1 + round % 4, [&](int) { ran++; });
    EXPECT_EQ(ran, 1 + round % 4);
  }
}

}  // namespace
}  // namespace godwit
