#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>
#include <fstream>

#include "base/checked.h"
#include "base/environment.h"
#include "base/file_map.h"
#include "base/json.h"
#include "base/sha256.h"

namespace godwit {
namespace {

std::filesystem::path scratch(const std::string& name) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("godwit_base_test_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  return folder / name;
}

template <typename Body>
ErrorCode code_of(Body&& body) {
  try {
    body();
  } catch (const Error& e) {
    return e.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorCode::internal;
}

TEST(Error, carries_origin_and_value) {
  try {
    fail(ErrorCode::io, "disk", "{}: {} bytes", "a.bin", 7);
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "[disk] a.bin: 7 bytes");
    EXPECT_EQ(e.code(), ErrorCode::io);
  }
}

TEST(Error, a_failed_check_is_an_internal_error_that_names_the_condition) {
  try {
    GODWIT_CHECK(1 == 2, "x is {}", 5);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::internal);
    EXPECT_NE(std::string(e.what()).find("1 == 2 does not hold: x is 5"), std::string::npos) << e.what();
  }
}

TEST(Checked, refuses_overflow_and_narrowing) {
  EXPECT_EQ(checked_add<std::uint64_t>(2, 3, "x"), 5u);
  EXPECT_EQ(checked_mul<std::uint32_t>(65535, 65537, "x"), 4294967295u);
  EXPECT_EQ(code_of([] { checked_mul<std::uint64_t>(1ull << 40, 1ull << 40, "x"); }),
            ErrorCode::corrupt_file);
  EXPECT_EQ(code_of([] { checked_add<std::uint64_t>(~0ull, 1, "x"); }), ErrorCode::corrupt_file);
  EXPECT_EQ(code_of([] { checked_cast<std::int32_t>(std::uint64_t{1} << 31, "x"); }),
            ErrorCode::corrupt_file);
  EXPECT_EQ(checked_cast<std::int32_t>(std::uint64_t{7}, "x"), 7);
}

TEST(FileMap, maps_content_and_tells_missing_from_unusable) {
  const auto path = scratch("content");
  std::ofstream(path) << "abc";
  EXPECT_EQ(FileMap(path).bytes().size(), 3u);
  std::ofstream(scratch("empty")).flush();
  EXPECT_TRUE(FileMap(scratch("empty")).bytes().empty());
  EXPECT_EQ(code_of([] { FileMap(scratch("none")); }), ErrorCode::not_found);
  EXPECT_EQ(code_of([] { FileMap(scratch("none").parent_path()); }), ErrorCode::io);
}

TEST(FileMap, refuses_a_pipe_at_once_instead_of_waiting_for_a_writer) {
  const auto path = scratch("pipe");
  std::filesystem::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(code_of([&] { FileMap{path}; }), ErrorCode::io);
}

TEST(Json, keeps_key_order_and_the_difference_of_int_and_float) {
  EXPECT_EQ(dump_json(parse_json(R"({"z":1,"a":[1,2.0,true,null]})", "t")),
            R"({"z":1,"a":[1,2.0,true,null]})");
}

// Judged by the parser of the library, which is right and slow.
TEST(Json, builds_what_the_library_builds_and_many_keys_take_no_quadratic_time) {
  std::string many = "{";
  for (int i = 0; i < 40; ++i)
    many += "\"k" + std::to_string(i % 23) + "\":[" + std::to_string(i) + ",{\"a\":{}}],";
  const std::string last =
      R"("x":{"y":[],"z":[[],{}]},"a":-1,"b":2.5,"c":true,"d":null,"e":"\u00e9","b":18446744073709551615})";
  for (const std::string& text :
       {many + last, std::string("7"), std::string("\"s\""), std::string("[]"),
        std::string("[1,[2,{\"a\":[3]}],4]"), std::string(R"({"a":1,"b":2,"a":{"c":3}})")})
    EXPECT_EQ(dump_json(parse_json(text, "t")), Json::parse(text).dump()) << text;

  std::string huge = "{";
  for (int i = 0; i < 200'000; ++i) huge += "\"" + std::to_string(1'000'000 + i) + "\":1,";
  const std::clock_t start = std::clock();
  EXPECT_EQ(parse_json(huge + "\"1000000\":2}", "huge").size(), 200'000u);
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 10);  // one search a key: minutes
}

TEST(Json, refuses_depth_trailing_text_and_bad_utf8) {
  const std::string deep(10000, '[');
  for (const std::string& text :
       {deep, std::string("{} x"), std::string("\"\xFF\""), std::string(""), std::string("{")})
    EXPECT_EQ(code_of([&] { parse_json(text, "body"); }), ErrorCode::invalid_argument) << text.substr(0, 9);
  for (const std::string_view text : {std::string_view("{}\0", 3), std::string_view("{}\0{\"a\":1}", 9)})
    EXPECT_EQ(code_of([&] { parse_json(text, "NUL ends nothing"); }), ErrorCode::invalid_argument);
  EXPECT_EQ(parse_json("\xEF\xBB\xBF{}", "bom"), Json::object());
  EXPECT_EQ(parse_json(R"(["[[[[\"[["])", "strings may hold brackets").size(), 1u);
}

TEST(Json, dumping_replaces_bytes_that_are_not_utf8) {
  EXPECT_EQ(dump_json(Json("\xFF"
                           "A")),
            "\"\xEF\xBF\xBD"
            "A\"");
}

TEST(Sha256, agrees_with_the_published_vectors) {  // FIPS 180-2, appendix B.1; the empty message
  Sha256 abc;
  abc.update(std::as_bytes(std::span("abc", 3)));
  EXPECT_EQ(abc.hex_digest(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  std::ofstream(scratch("empty")).flush();
  EXPECT_EQ(sha256_of_file(scratch("empty")),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Environment, an_empty_variable_is_absent) {
  const Environment env({{"HOME", "/h"}, {"XDG_CACHE_HOME", ""}});
  EXPECT_EQ(env.godwit_cache_folder(), "/h/.cache/godwit");
  EXPECT_EQ(code_of([] { Environment().user_cache_folder(); }), ErrorCode::not_found);
}

}  // namespace
}  // namespace godwit
