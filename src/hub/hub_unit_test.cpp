// The parts of a download that need no server: hashes, retry times, URLs, and which files are chosen.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "hub/content_hash.h"
#include "hub/file_choice.h"
#include "hub/http_client.h"
#include "hub/hub_paths.h"
#include "hub/retry.h"

namespace godwit::hub {
namespace {

using std::chrono::milliseconds;

std::string hash_of(HashKind kind, std::string_view text) {
  ContentHash hash(kind, text.size());
  hash.update(std::as_bytes(std::span(text)));
  return hash.hex_digest();
}

TEST(ContentHash, EqualsPublishedValues) {
  // `git hash-object` of an empty file and of "hello\n"; SHA-256 of "abc" from FIPS 180-2.
  EXPECT_EQ(hash_of(HashKind::git_sha1, ""), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
  EXPECT_EQ(hash_of(HashKind::git_sha1, "hello\n"), "ce013625030ba8dba906f756967f9e9ca394464a");
  EXPECT_EQ(hash_of(HashKind::sha256, "abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Retry, DoublesUpToTheCapAndObeysRetryAfter) {
  const RetryPolicy policy;
  EXPECT_EQ(retry_delay(policy, 1, {}), milliseconds(500));
  EXPECT_EQ(retry_delay(policy, 3, {}), milliseconds(2000));
  EXPECT_EQ(retry_delay(policy, 60, {}), policy.longest_delay);
  EXPECT_EQ(retry_delay(policy, 1, "7"), milliseconds(7000));
  EXPECT_EQ(retry_delay(policy, 1, "601"), std::nullopt);
  EXPECT_EQ(retry_delay(policy, 1, "Sun, 06 Nov 1994 08:49:37 GMT"), milliseconds(0));
  EXPECT_EQ(retry_delay(policy, 1, "Fri, 31 Dec 2100 23:59:59 GMT"), std::nullopt);
  EXPECT_EQ(retry_delay(policy, 1, "nonsense"), milliseconds(500));
  EXPECT_EQ(retry_delay(policy, 1, "-3"), milliseconds(500));
}

TEST(Retry, StatusesWorthAnotherTry) {
  for (const int status : {408, 429, 500, 502, 503, 504}) EXPECT_TRUE(is_retriable_status(status)) << status;
  for (const int status : {200, 206, 304, 400, 401, 403, 404, 416, 600})
    EXPECT_FALSE(is_retriable_status(status)) << status;
}

TEST(Url, OriginsIncludeSchemeHostAndPort) {
  EXPECT_EQ(origin_of("https://Example.org/a/b?c"), "https://example.org:443");
  EXPECT_EQ(origin_of("http://example.org:8080"), "http://example.org:8080");
  EXPECT_NE(origin_of("http://example.org"), origin_of("https://example.org"));
  for (const std::string bad : {"", "example", "ftp://example.org/x", "file:///etc/passwd", "http://"})
    EXPECT_THROW(origin_of(bad), Error) << bad;
}

TEST(Url, EscapesEverythingThatIsNotUnreserved) {
  EXPECT_EQ(url_escape("a b/c+d%?#é", true), "a%20b/c%2Bd%25%3F%23%C3%A9");
  EXPECT_EQ(url_escape("refs/pr/1", false), "refs%2Fpr%2F1");
}

TEST(SplitNames, AreReadAndMade) {
  const auto name = parse_split_name("model-00002-of-00010.gguf");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->stem, "model");
  EXPECT_EQ(name->part, 2);
  EXPECT_EQ(name->parts, 10);
  EXPECT_EQ(split_part_name(*name, 1), "model-00001-of-00010.gguf");
  for (const std::string bad :
       {"model.gguf", "-00001-of-00002.gguf", "m-00003-of-00002.gguf", "m-00000-of-00002.gguf",
        "m-0000a-of-00002.gguf", "m-00001-of-00002.safetensors"})
    EXPECT_FALSE(parse_split_name(bad)) << bad;
}

std::vector<std::string> chosen(const std::vector<std::string>& names, const FileChoice& choice = {}) {
  std::vector<RepoFile> files;
  for (const auto& name : names) files.push_back({.name = name, .hash = {}});
  std::vector<std::string> result;
  for (const auto& file : choose_files(files, choice, "org/name")) result.push_back(file.name);
  return result;
}

ErrorCode refusal(const std::vector<std::string>& names, const FileChoice& choice = {}) {
  try {
    chosen(names, choice);
  } catch (const Error& e) {
    return e.code();
  }
  return ErrorCode::internal;
}

TEST(FileChoice, TakesWhatAnOpenerReadsAndNoPickles) {
  EXPECT_EQ(chosen({"model.safetensors", "config.json", "chat_template.jinja", "tokenizer.model",
                    "merges.txt", "qwen.tiktoken", "pytorch_model.bin", "model.pt", "m.gguf",
                    "onnx/config.json", "original/model.safetensors", "README.md", ".gitattributes"}),
            (std::vector<std::string>{"model.safetensors", "config.json", "chat_template.jinja",
                                      "tokenizer.model", "merges.txt", "qwen.tiktoken"}));
}

TEST(FileChoice, IncludeReplacesTheRulesAndExcludeTakesAway) {
  const std::vector<std::string> names = {"a/x.bin", "a/y.json", "model.safetensors", "z.json"};
  EXPECT_EQ(chosen(names, {.include = {"a/"}, .exclude = {}, .file = {}}),
            (std::vector<std::string>{"a/x.bin", "a/y.json"}));
  EXPECT_EQ(chosen(names, {.include = {"*.json"}, .exclude = {"z*"}, .file = {}}),
            std::vector<std::string>{"a/y.json"});
  EXPECT_EQ(chosen(names, {.include = {}, .exclude = {"a/*"}, .file = {}}),
            (std::vector<std::string>{"model.safetensors", "z.json"}));
  EXPECT_EQ(refusal(names, {.include = {"*.none"}, .exclude = {}, .file = {}}), ErrorCode::not_found);
}

TEST(FileChoice, GgufRepositoriesGiveTheirOnlyModelOrAsk) {
  EXPECT_EQ(chosen({"README.md", "m.gguf", "config.json"}), std::vector<std::string>{"m.gguf"});
  EXPECT_EQ(refusal({"a.gguf", "b.gguf"}), ErrorCode::invalid_argument);
  EXPECT_EQ(chosen({"a.gguf", "b.gguf"}, {.include = {}, .exclude = {}, .file = "b.gguf"}),
            std::vector<std::string>{"b.gguf"});
  EXPECT_EQ(refusal({"a.gguf"}, {.include = {}, .exclude = {}, .file = "c.gguf"}), ErrorCode::not_found);
  EXPECT_EQ(chosen({"m-00001-of-00002.gguf", "m-00002-of-00002.gguf"}).size(), 2u);
  EXPECT_EQ(refusal({"pytorch_model.bin", "config.json"}), ErrorCode::unsupported);
}

}  // namespace
}  // namespace godwit::hub
