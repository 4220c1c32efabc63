// Loading a tensor leaves none of the file's pages in memory beside what was made of them.
#include <fstream>

#include <gtest/gtest.h>

#include "base/file_pages.h"
#include "base/thread_pool.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/test_files.h"
#include "checkpoint/weight_store.h"

namespace godwit::checkpoint {
namespace {

TEST(ReadOnce, takes_whole_units_in_order_and_leaves_nothing_out) {
  const std::vector<std::byte> bytes((std::size_t{9} << 20) + 5);
  for (const std::size_t unit : {std::size_t{1}, std::size_t{144}, std::size_t{5} << 20}) {
    std::size_t at = 0;
    read_once(bytes, unit, [&](std::span<const std::byte> piece) {
      EXPECT_EQ(piece.data(), bytes.data() + at);
      at += piece.size();
      EXPECT_TRUE(at == bytes.size() || piece.size() % unit == 0) << unit;
    });
    EXPECT_EQ(at, bytes.size());
  }
}

#if defined(__linux__)

// Bytes of the file's mappings that are in this process's memory.
std::size_t resident(const std::filesystem::path& path) {
  std::ifstream maps("/proc/self/smaps");
  std::size_t total = 0;
  bool is_ours = false;
  for (std::string line; std::getline(maps, line);) {
    const std::string first = line.substr(0, line.find(' '));
    if (!first.ends_with(':')) is_ours = line.ends_with(path.string());
    if (is_ours && line.starts_with("Rss:")) total += std::stoull(line.substr(4)) * 1024;
  }
  return total;
}

constexpr int kRows = 4096, kColumns = 2048;  // 16 MiB of F16
// A page at each end of a tensor and of each of 64 pieces, and what the system maps around a fault.
constexpr std::size_t kLeft = std::size_t{2} << 20;

// The matrix, or the same rows as matrices of experts.
std::filesystem::path dense_file(const std::string& shape = fmt::format("[{},{}]", kRows, kColumns)) {
  const std::size_t bytes = std::size_t{kRows} * kColumns * 2;
  return write_file(fresh_folder("pages") / "dense.safetensors",
                    safetensors_bytes(fmt::format(R"({{"up.weight":{{"dtype":"F16","shape":{},"data_offsets":[0,{}]}}}})",
                                                  shape, bytes),
                                      std::string(bytes, '\0')));
}

std::filesystem::path affine_file(const std::string& rows = std::to_string(kRows)) {
  const std::size_t codes = std::size_t{kRows} * kColumns, plane = codes / 32 * 2;
  const auto entry = [&rows](const char* name, const char* dtype, int columns, std::size_t begin, std::size_t end) {
    return fmt::format(R"("up.{}":{{"dtype":"{}","shape":[{},{}],"data_offsets":[{},{}]}})", name, dtype, rows, columns,
                       begin, end);
  };
  const std::string header = "{" + entry("weight", "U32", kColumns / 4, 0, codes) + "," +
                             entry("scales", "F16", kColumns / 32, codes, codes + plane) + "," +
                             entry("biases", "F16", kColumns / 32, codes + plane, codes + 2 * plane) + "}";
  return write_file(fresh_folder("pages") / "affine.safetensors",
                    safetensors_bytes(header, std::string(codes + 2 * plane, '\0')));
}

// The look itself sees pages: all of them, before anything is given back.
std::size_t touched(const FileMap& file, const std::filesystem::path& path) {
  std::size_t sum = 0;
  for (const std::byte byte : file.bytes()) sum += static_cast<std::size_t>(byte);
  return sum == 0 ? 0 : resident(path);
}

void load_and_look(const std::filesystem::path& path, bool native) {
  ThreadPool pool(2);
  const auto file = std::make_shared<const FileMap>(path);
  WeightStore store(read_safetensors(file), QuantizationMap(), path.string());
  if (native) store.pack_with(pool);
  ASSERT_GE(touched(*file, path), file->bytes().size());
  const Weight weight = store.matrix("up", kRows, kColumns);
  EXPECT_EQ(weight.rows, kRows);
  EXPECT_LT(resident(path), kLeft) << path << (native ? ", native" : ", reference");
}

TEST(WeightPages, of_a_dense_matrix_are_given_back) {
  for (const bool native : {false, true}) load_and_look(dense_file(), native);
}

TEST(WeightPages, of_an_affine_matrix_are_given_back) {
  for (const bool native : {false, true}) load_and_look(affine_file(), native);
}

// Of a stack of experts, and of halves of it.
TEST(WeightPages, of_experts_are_given_back) {
  for (const bool is_dense : {true, false}) {
    const auto path = is_dense ? dense_file("[8,512,2048]") : affine_file("8,512");
    ThreadPool pool(2);
    const auto file = std::make_shared<const FileMap>(path);
    WeightStore store(read_safetensors(file), QuantizationMap(), path.string());
    store.pack_with(pool);
    const ExpertNames halves[] = {{.stacked = "none", .fused = "up", .part = ExpertNames::Part::first_half},
                                  {.stacked = "none", .fused = "up", .part = ExpertNames::Part::second_half}};
    ASSERT_GE(touched(*file, path), file->bytes().size());
    EXPECT_EQ(store.experts("", {.stacked = "up"}, 8, 512, kColumns).packed_experts.size(), 8U);
    EXPECT_LT(resident(path), kLeft) << path;
    for (const ExpertNames& half : halves) {
      ASSERT_GE(touched(*file, path), file->bytes().size());
      EXPECT_EQ(store.experts("", half, 8, 256, kColumns).packed_experts.size(), 8U);
      EXPECT_LT(resident(path), kLeft) << path;
    }
  }
}

#endif

}  // namespace
}  // namespace godwit::checkpoint
