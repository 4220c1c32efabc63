#include "base/free_memory.h"

#include <gtest/gtest.h>

#include <fstream>

namespace godwit {
namespace {

class FreeMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::temp_directory_path() / "godwit_free_memory" /
            ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(root_);
    write("proc/meminfo", "MemTotal:  9000 kB\nMemFree:  100 kB\nMemAvailable:    4000 kB\nBuffers: 1 kB\n");
  }
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  std::filesystem::path root_;
};

TEST_F(FreeMemory, is_what_the_system_calls_available) {
  EXPECT_EQ(free_memory(root_), 4000u * 1024);
  EXPECT_GT(free_memory("/nowhere"), 0u) << "all that is installed";
  EXPECT_GT(free_memory(), 0u);
}

TEST_F(FreeMemory, is_bounded_by_every_group_on_the_way_up) {
  write("proc/self/cgroup", "0::/a/b\n");
  write("sys/fs/cgroup/a/b/memory.max", "max\n");
  write("sys/fs/cgroup/a/b/memory.current", "5\n");
  EXPECT_EQ(free_memory(root_), 4000u * 1024);
  write("sys/fs/cgroup/a/memory.max", "3000\n");
  write("sys/fs/cgroup/a/memory.current", "1000\n");
  EXPECT_EQ(free_memory(root_), 2000u);
  write("sys/fs/cgroup/a/memory.current", "3001\n");
  EXPECT_EQ(free_memory(root_), 0u);
}

TEST_F(FreeMemory, reads_the_older_layout) {
  write("proc/self/cgroup", "garbage\n5:cpu:/y\n4:blkio,memory:/x\n");
  write("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "900\n");
  write("sys/fs/cgroup/memory/x/memory.usage_in_bytes", "200\n");
  EXPECT_EQ(free_memory(root_), 700u);
}

}  // namespace
}  // namespace godwit
