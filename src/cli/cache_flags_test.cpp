#include "cli/cache_flags.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace godwit::cli {
namespace {

using Use = decode::PromptCacheOptions::Use;

TEST(CacheFlags, sizes_are_numbers_with_a_unit) {
  const auto bytes = [](const char* text) { return parse_bytes(text, "--x"); };
  EXPECT_EQ(bytes("0"), 0u);
  EXPECT_EQ(bytes("1000"), 1000u);
  EXPECT_EQ(bytes("512M"), 512u << 20);
  EXPECT_EQ(bytes("2G"), std::uint64_t{2} << 30);
  EXPECT_EQ(bytes("2g"), std::uint64_t{2} << 30);
  EXPECT_EQ(bytes("1.5GiB"), std::uint64_t{3} << 29);
  EXPECT_EQ(bytes("3KB"), 3072u);
  EXPECT_EQ(bytes("7b"), 7u);
  EXPECT_EQ(bytes("1T"), std::uint64_t{1} << 40);
  for (const char* text : {"", "G", "-1", "1X", "1 G", "1GG", "1iB", "1e3", "nan", "inf", "0x10", "9999999T", "1G1"})
    EXPECT_THROW(bytes(text), Error) << text;
}

TEST(CacheFlags, no_flag_means_what_the_verb_means) {
  const decode::PromptCacheOptions options = CacheFlags{}.options(Use::in_native);
  EXPECT_EQ(options.use, Use::in_native);
  EXPECT_FALSE(options.memory_bytes.has_value());
  EXPECT_TRUE(options.folder.empty());
  EXPECT_EQ(CacheFlags{}.options(Use::off).use, Use::off);
}

TEST(CacheFlags, a_size_or_a_folder_asks_for_a_cache) {
  const auto sized = CacheFlags{.memory = "64M", .folder = {}, .disk = {}}.options(Use::in_native);
  EXPECT_EQ(sized.use, Use::on);
  EXPECT_EQ(sized.memory_bytes, std::size_t{64} << 20);
  const auto kept = CacheFlags{.memory = {}, .folder = "somewhere", .disk = "3G"}.options(Use::off);
  EXPECT_EQ(kept.use, Use::on);
  EXPECT_EQ(kept.folder, "somewhere");
  EXPECT_EQ(kept.disk_bytes, std::uint64_t{3} << 30);
  for (const char* none : {"off", "0"})
    EXPECT_EQ((CacheFlags{.memory = none, .folder = {}, .disk = {}}.options(Use::in_native).use), Use::off);
}

TEST(CacheFlags, what_makes_no_sense_is_refused) {
  const CacheFlags wrong[] = {{.memory = "off", .folder = "x", .disk = {}},
                              {.memory = {}, .folder = {}, .disk = "1G"},
                              {.memory = {}, .folder = "x", .disk = "0"},
                              {.memory = {}, .folder = "/dev/null", .disk = {}},
                              {.memory = "much", .folder = {}, .disk = {}}};
  for (const CacheFlags& flags : wrong) EXPECT_THROW(flags.options(Use::in_native), Error);
}

TEST(CacheFlags, an_empty_value_is_refused_by_the_name_of_its_flag) {
  const std::pair<CacheFlags, const char*> wrong[] = {{{.memory = "", .folder = {}, .disk = {}}, "--prompt-cache"},
                                                      {{.memory = {}, .folder = "", .disk = {}}, "--cache-dir"},
                                                      {{.memory = {}, .folder = "x", .disk = ""}, "--cache-disk"}};
  for (const auto& [flags, name] : wrong) {
    try {
      flags.options(Use::in_native);
      ADD_FAILURE() << name;
    } catch (const Error& refused) {
      EXPECT_EQ(refused.code(), ErrorCode::invalid_argument);
      EXPECT_NE(std::string_view(refused.what()).find(std::string(name) + " is empty"), std::string_view::npos)
          << refused.what();
    }
  }
}

}  // namespace
}  // namespace godwit::cli
