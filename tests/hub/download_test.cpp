// get_repository against a hub that behaves, and against one that does not.
#include <gtest/gtest.h>

#include <unistd.h>
#include <cerrno>
#include <chrono>
#include <filesystem>

#include "base/error.h"
#include "fixture.h"
#include "hub/model_resolver.h"

namespace godwit::hub_tests {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kSize = 300'000;

ErrorCode code_of(const std::function<void()>& action, std::string* message = nullptr) {
  try {
    action();
  } catch (const Error& e) {
    if (message) *message = e.what();
    return e.code();
  }
  ADD_FAILURE() << "no Error was thrown";
  return ErrorCode::internal;
}

std::vector<std::string> messages_of(const std::function<void(const Log&)>& action) {
  std::vector<std::string> messages;
  std::mutex mutex;
  action(Log([&](LogLevel, std::string_view text) {
    const std::lock_guard guard(mutex);
    messages.emplace_back(text);
  }));
  return messages;
}

using Download = HubFixture;

TEST_F(Download, GivesASnapshotOfRelativeLinksAndWritesTheRef) {
  publish(kSize);
  const auto result = get();
  expect_complete();
  EXPECT_EQ(result.commit, kCommit);
  EXPECT_EQ(result.snapshot, repo_folder() / "snapshots" / kCommit);
  const auto link = fs::read_symlink(result.snapshot / "sub/notes.txt");
  EXPECT_TRUE(link.string().starts_with("../../../blobs/")) << link;
  EXPECT_EQ(hub_.file_requests("pytorch_model.bin"), 0u);
  for (const auto& request : hub_.requests()) {  // the commit is pinned: no file is asked for by branch
    EXPECT_TRUE(!request.is_file() || request.target.find(kCommit) != std::string::npos) << request.target;
  }
}

TEST_F(Download, ASecondGetFetchesNothing) {
  publish(kSize);
  EXPECT_GT(get().fetched, kSize);
  const auto again = get();
  EXPECT_EQ(again.fetched, 0u);
  EXPECT_EQ(again.missing, 0u);
  EXPECT_EQ(hub_.file_requests(kWeights), 1u);
}

TEST_F(Download, ADryRunWritesNothing) {
  publish(kSize);
  auto plan = request();
  plan.dry_run = true;
  const auto result = hub::get_repository(plan, options(), {}, {}, {});
  EXPECT_EQ(result.missing, result.size);
  EXPECT_EQ(result.files.size(), 4u);
  EXPECT_FALSE(fs::exists(cache_));
}

TEST_F(Download, APartialFileIsContinuedWhereItEnds) {
  publish(kSize);
  write_file(partial(), files_.back().content.substr(0, 123'457));
  EXPECT_LT(get().missing, kSize);
  expect_complete();
  EXPECT_EQ(hub_.bytes_of(kWeights), files_.back().content.size() - 123'457);
}

TEST_F(Download, AFullPartialFileIsVerifiedWithoutARequest) {
  publish(kSize);
  write_file(partial(), files_.back().content);
  get();
  expect_complete();
  EXPECT_EQ(hub_.file_requests(kWeights), 0u);
}

TEST_F(Download, AWrongPartialFileIsFetchedAgainInFull) {
  publish(kSize);
  write_file(partial(), std::string(1000, 'x'));
  get();
  expect_complete();
  EXPECT_EQ(hub_.file_requests(kWeights), 2u);
}

TEST_F(Download, APartialFileThatIsTooLongIsDropped) {
  publish(kSize);
  write_file(partial(), files_.back().content + "tail");
  get();
  expect_complete();
}

TEST_F(Download, ACorruptedByteIsTriedOnceMoreAndThenRefusedWithoutARef) {
  publish(kSize);
  hub_.set_hook([](const HubRequest& request, HubReply& reply) {
    if (request.target.ends_with(kWeights)) reply.body[reply.body.size() / 2] ^= 1;
  });
  std::string message;
  EXPECT_EQ(code_of([&] { get(); }, &message), ErrorCode::corrupt_file);
  EXPECT_NE(message.find(kWeights), std::string::npos) << message;
  EXPECT_EQ(hub_.file_requests(kWeights), 2u);
  EXPECT_FALSE(fs::exists(ref()));
  EXPECT_FALSE(fs::exists(partial()));
  EXPECT_FALSE(fs::exists(repo_folder() / "snapshots" / kCommit / kWeights));
}

TEST_F(Download, AByteCorruptedOnceIsHealed) {
  publish(kSize);
  int spoiled = 0;
  hub_.set_hook([&](const HubRequest& request, HubReply& reply) {
    if (request.target.ends_with(kWeights) && spoiled++ == 0) reply.body[1] ^= 1;
  });
  get();
  expect_complete();
}

TEST_F(Download, ASmallFileIsCheckedAgainstItsGitHash) {
  publish(kSize);
  hub_.set_hook([](const HubRequest& request, HubReply& reply) {
    if (request.target.ends_with("config.json") && request.is_file()) reply.body[0] = '[';
  });
  EXPECT_EQ(code_of([&] { get(); }), ErrorCode::corrupt_file);
  EXPECT_FALSE(fs::exists(ref()));
}

TEST_F(Download, AServerThatIgnoresRangeIsReadFromTheStart) {
  publish(kSize);
  write_file(partial(), files_.back().content.substr(0, 5000));
  hub_.set_hook([this](const HubRequest& request, HubReply& reply) {
    if (request.target.ends_with(kWeights))
      reply = {.status = 200, .headers = {}, .body = files_.back().content};
  });
  get();
  expect_complete();
  EXPECT_EQ(hub_.file_requests(kWeights), 1u);
}

TEST_F(Download, AContentRangeThatStartsElsewhereIsNotAppended) {
  publish(kSize);
  write_file(partial(), files_.back().content.substr(0, 5000));
  hub_.set_hook([](const HubRequest& request, HubReply& reply) {
    if (request.target.ends_with(kWeights) && reply.status == 206)
      reply.headers["Content-Range"] = "bytes 0-9/10";
  });
  const auto messages =
      messages_of([&](const Log& log) { hub::get_repository(request(), options(), {}, {}, log); });
  ASSERT_EQ(messages.size(), 1u);  // seen at once, not by a wrong checksum at the end
  EXPECT_NE(messages[0].find("unusable Content-Range \"bytes 0-9/10\""), std::string::npos) << messages[0];
  expect_complete();
}

TEST_F(Download, ARangeThatIsRefusedStartsAgain) {
  publish(kSize);
  write_file(partial(), files_.back().content.substr(0, 5000));
  hub_.set_hook([](const HubRequest& request, HubReply& reply) {
    if (request.headers.contains("range")) reply = {.status = 416, .headers = {}, .body = ""};
  });
  get();
  expect_complete();
}

TEST_F(Download, MoreBytesThanAnnouncedAreRefused) {
  publish(kSize);
  hub_.set_hook([](const HubRequest& request, HubReply& reply) {
    if (request.target.ends_with(kWeights)) reply.body += "more";
  });
  EXPECT_EQ(code_of([&] { get(); }), ErrorCode::corrupt_file);
  EXPECT_FALSE(fs::exists(ref()));
}

TEST_F(Download, AuthorizationStaysWithTheFirstHost) {
  publish(kSize);
  FakeHub cdn;
  cdn.add_repo(kRepo, kCommit, files_);
  hub_.set_hook([&](const HubRequest& request, HubReply& reply) {
    if (!request.target.ends_with(kWeights)) return;
    // First to another path of the same host, then away.
    const bool is_first = request.target.find("/moved") == std::string::npos;
    reply = {.status = 302, .headers = {}, .body = "gone"};
    reply.headers["Location"] =
        is_first ? "/moved" + request.target : cdn.endpoint() + request.target.substr(6);
  });
  auto with = options();
  with.token = "secret";
  get(with);
  expect_complete();
  for (const auto& request : hub_.requests()) {
    ASSERT_TRUE(request.headers.contains("authorization")) << request.target;
    EXPECT_EQ(request.headers.at("authorization"), "Bearer secret");
  }
  ASSERT_EQ(cdn.requests().size(), 1u);
  EXPECT_FALSE(cdn.requests()[0].headers.contains("authorization"));
}

TEST_F(Download, ARedirectLoopEnds) {
  publish(kSize);
  hub_.set_hook([](const HubRequest& request, HubReply& reply) {
    if (request.is_file()) reply = {.status = 302, .headers = {{"Location", request.target}}, .body = ""};
  });
  EXPECT_EQ(code_of([&] { get(); }), ErrorCode::network);
}

TEST_F(Download, ATransferThatBreaksOffIsContinued) {
  publish(kSize);
  int breaks = 0;
  hub_.set_hook([&](const HubRequest& request, HubReply& reply) {
    if (request.target.ends_with(kWeights) && breaks++ < 8) reply.cut_after = 20'000;
  });
  get();  // eight breaks, each after progress, do not exhaust five tries
  expect_complete();
  EXPECT_LE(hub_.bytes_of(kWeights), files_.back().content.size() + 1000);
}

TEST_F(Download, AServerThatNeverSendsAByteIsGivenUpAfterFiveTries) {
  publish(kSize);
  hub_.set_hook([](const HubRequest& request, HubReply& reply) {
    if (request.target.ends_with(kWeights)) reply.cut_after = 0;
  });
  EXPECT_EQ(code_of([&] { get(); }), ErrorCode::network);
  EXPECT_EQ(hub_.file_requests(kWeights), 5u);
}

TEST_F(Download, AStalledTransferIsNoticedAndContinued) {
  publish(kSize);
  int stalls = 0;
  hub_.set_hook([&](const HubRequest& request, HubReply& reply) {
    if (!request.target.ends_with(kWeights) || stalls++ > 0) return;
    reply.cut_after = 50'000;
    reply.hang_at_cut = true;
  });
  auto with = options();
  with.http.stall = std::chrono::seconds(1);
  const auto start = std::chrono::steady_clock::now();
  get(with);
  expect_complete();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(3));
}

TEST_F(Download, BusyAnswersAreRetriedAndRetryAfterIsObeyed) {
  publish(kSize);
  std::map<std::string, int> seen;
  hub_.set_hook([&](const HubRequest& request, HubReply& reply) {
    const int number = seen[request.target]++;
    if (number == 0) reply = {.status = 503, .headers = {}, .body = "busy"};
    if (number == 1 && request.target.ends_with(kWeights))
      reply = {.status = 429, .headers = {{"Retry-After", "1"}}, .body = "slow down"};
  });
  const auto start = std::chrono::steady_clock::now();
  get();
  expect_complete();
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
}

TEST_F(Download, ARetryAfterOfAnHourIsAnError) {
  publish(kSize);
  hub_.set_hook([](const HubRequest&, HubReply& reply) {
    reply = {.status = 429, .headers = {{"Retry-After", "3600"}}, .body = ""};
  });
  EXPECT_EQ(code_of([&] { get(); }), ErrorCode::network);
}

TEST_F(Download, NotEnoughDiskSpaceIsSaidBeforeAnyFileIsAskedFor) {
  publish(kSize);
  auto with = options();
  with.disk_reserve = 1ull << 30;
  with.disk.free_bytes = [](const fs::path&) { return (1ull << 30) + kSize / 2; };
  std::string message;
  EXPECT_EQ(code_of([&] { get(with); }, &message), ErrorCode::io);
  EXPECT_NE(message.find("must stay free"), std::string::npos) << message;
  EXPECT_EQ(hub_.file_requests(kWeights), 0u);
  with.disk.free_bytes = [](const fs::path&) { return (1ull << 30) + 2 * kSize; };
  get(with);
  expect_complete();
}

TEST_F(Download, ADiskThatFillsUpKeepsThePartialFileAndSaysSo) {
  publish(kSize);
  auto with = options();
  const auto room = std::make_shared<std::atomic<std::int64_t>>(100'000);
  with.disk.write = [room](int descriptor, const void* data, std::size_t size) -> ssize_t {
    const auto left = room->load();
    if (left <= 0) {
      errno = ENOSPC;
      return -1;
    }
    const auto count =
        ::write(descriptor, data, std::min(size, static_cast<std::size_t>(left)));  // short, as real disks do
    *room -= count;
    return count;
  };
  std::string message;
  EXPECT_EQ(code_of([&] { get(with); }, &message), ErrorCode::io);
  EXPECT_NE(message.find("disk is full"), std::string::npos) << message;
  EXPECT_FALSE(fs::exists(ref()));
  const auto kept = fs::file_size(partial());
  EXPECT_GT(kept, 0u);
  EXPECT_TRUE(files_.back().content.starts_with(read_file(partial())));
  get();
  expect_complete();
  EXPECT_EQ(hub_.file_requests(kWeights), 2u);
  const auto requests = hub_.requests();
  const auto last = std::find_if(requests.rbegin(), requests.rend(),
                                 [](const auto& r) { return r.target.ends_with(kWeights); });
  EXPECT_EQ(last->headers.at("range"), fmt::format("bytes={}-", kept));
}

TEST_F(Download, StoppingKeepsThePartialFile) {
  publish(kSize);
  hub_.set_hook([](const HubRequest& request, HubReply& reply) {
    if (!request.target.ends_with(kWeights)) return;
    reply.cut_after = 80'000;
    reply.hang_at_cut = true;
  });
  std::atomic<bool> is_stopped = false;
  std::chrono::steady_clock::time_point asked;
  const auto progress = [&](const hub::GetProgress& now) {
    if (now.files.back().here < 80'000 || is_stopped) return;
    asked = std::chrono::steady_clock::now();
    is_stopped = true;
  };
  EXPECT_EQ(code_of([&] {
              hub::get_repository(request(), options(), progress, [&] { return is_stopped.load(); }, {});
            }),
            ErrorCode::cancelled);
  EXPECT_LT(std::chrono::steady_clock::now() - asked, std::chrono::seconds(1));
  EXPECT_EQ(fs::file_size(partial()), 80'000u);
  EXPECT_FALSE(fs::exists(ref()));
}

TEST_F(Download, OfflineOpensNoConnection) {
  publish(kSize);
  auto with = options();
  with.offline = true;
  std::string message;
  EXPECT_EQ(code_of([&] { get(with); }, &message), ErrorCode::network);
  EXPECT_NE(message.find("HF_HUB_OFFLINE"), std::string::npos) << message;
  EXPECT_EQ(hub_.connections(), 0);
  get();
  const int before = hub_.connections();
  EXPECT_EQ(get(with).snapshot, repo_folder() / "snapshots" / kCommit);
  auto one_file = request();
  one_file.choice.file = "other.gguf";
  EXPECT_EQ(code_of([&] { hub::get_repository(one_file, with, {}, {}, {}); }), ErrorCode::network);
  EXPECT_EQ(hub_.connections(), before);
}

TEST_F(Download, GatedPrivateAndUnknownRepositoriesAreExplained) {
  publish(kSize);
  HubReply refusal;
  hub_.set_hook([&](const HubRequest&, HubReply& reply) { reply = refusal; });
  struct Case {
    int status;
    const char* error_code;
    const char* expected;
  };
  for (const auto& [status, error_code, expected] :
       {Case{403, "GatedRepo", "accept its licence at"}, Case{401, "GatedRepo", "accept its licence at"},
        Case{401, "RepoNotFound", "set HF_TOKEN"}, Case{404, "RevisionNotFound", "has no revision \"main\""},
        Case{404, "", "does not exist"}}) {
    refusal = {.status = status, .headers = {{"X-Error-Code", error_code}}, .body = ""};
    std::string message;
    EXPECT_EQ(code_of([&] { get(); }, &message), ErrorCode::not_found);
    EXPECT_NE(message.find(expected), std::string::npos) << status << " " << message;
  }
}

TEST_F(Download, MaliciousFileNamesAreRefusedAndNothingIsWritten) {
  for (const std::string name :
       {"../../../../escape.json", "/etc/escape.json", "a/../../escape.json", "a\\..\\escape.json",
        "a//b.json", "./config.json", "..", "nul\x01.json", ""}) {
    hub_.add_repo(kRepo, kCommit, {{"config.json", "{}"}, {name, "evil"}});
    std::string message;
    EXPECT_EQ(code_of([&] { get(); }, &message), ErrorCode::corrupt_file) << name;
    EXPECT_NE(message.find("refusing the file name"), std::string::npos) << message;
    EXPECT_TRUE(files_below(folder_).empty()) << name;
  }
}

TEST_F(Download, HashesAndCommitsThatAreNoneAreRefused) {
  for (
      const std::string body :
      {R"({"sha":"../../x","siblings":[]})", R"({"siblings":[]})",
       R"({"sha":"0123456789abcdef0123456789abcdef01234567","siblings":[{"rfilename":"config.json","size":1,"blobId":"../../../x"}]})",
       R"({"sha":"0123456789abcdef0123456789abcdef01234567","siblings":[{"rfilename":"config.json","blobId":"0123456789abcdef0123456789abcdef01234567"}]})",
       R"([1)", R"("text")"}) {
    hub_.set_hook(
        [&](const HubRequest&, HubReply& reply) { reply = {.status = 200, .headers = {}, .body = body}; });
    EXPECT_EQ(code_of([&] { get(); }), ErrorCode::corrupt_file) << body;
    EXPECT_TRUE(files_below(folder_).empty()) << body;
  }
}

TEST_F(Download, WithoutLinksTheSnapshotHoldsRealFiles) {
  publish(kSize);
  files_.push_back({"copy/twin.safetensors", files_.back().content, true});  // two names, one blob
  hub_.add_repo(kRepo, kCommit, files_);
  auto with = options();
  with.disk.symlink = [](const char*, const char*) {
    errno = EPERM;
    return -1;
  };
  get(with);
  expect_complete();
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(repo_folder() / "snapshots" / kCommit / kWeights)));
  EXPECT_EQ(get(with).fetched, 0u);
}

TEST_F(Download, ManyFilesComeFourAtATime) {
  std::vector<HubFile> files;
  for (unsigned i = 0; i < 12; ++i)
    files.push_back({fmt::format("part-{}.safetensors", i), random_content(20'000, i), true});
  hub_.add_repo(kRepo, kCommit, files);
  get();
  for (const auto& file : files)
    EXPECT_TRUE(read_file(repo_folder() / "snapshots" / kCommit / file.name) == file.content) << file.name;
  EXPECT_LE(hub_.connections(), 5);  // one for the listing, one for each worker
}

TEST_F(Download, ARevisionMayHoldSlashesAndACommitNeedsNoRef) {
  publish(kSize);
  hub_.set_hook([&](const HubRequest& request, HubReply& reply) {
    if (request.target.find("/revision/refs%2Fpr%2F1") == std::string::npos) return;
    reply = {
        .status = 200,
        .headers = {},
        .body = fmt::format(
            R"({{"sha":"{}","siblings":[{{"rfilename":"x.safetensors","size":0,"blobId":"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"}}]}})",
            kCommit)};
  });
  auto wanted = request();
  wanted.revision = "refs/pr/1";
  hub::get_repository(wanted, options(), {}, {},
                      {});  // the empty file: e69de2... is git's well-known id of it
  EXPECT_EQ(read_file(repo_folder() / "refs/refs/pr/1"), kCommit);
  wanted.revision = kCommit;
  hub::get_repository(wanted, options(), {}, {}, {});
  EXPECT_FALSE(fs::exists(ref()));
}

TEST_F(Download, RetriesAreLogged) {
  publish(kSize);
  int failures = 0;
  hub_.set_hook([&](const HubRequest&, HubReply& reply) {
    if (failures++ == 0) reply = {.status = 500, .headers = {}, .body = ""};
  });
  const auto messages =
      messages_of([&](const Log& log) { hub::get_repository(request(), options(), {}, {}, log); });
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_NE(messages[0].find("status 500"), std::string::npos) << messages[0];
}

TEST_F(Download, WhatWasFetchedWorksAsAModelName) {
  publish(kSize);
  get();
  const Environment environment({{"HF_HUB_CACHE", cache_.string()}, {"HOME", folder_.string()}});
  EXPECT_EQ(hub::resolve_model(kRepo, environment).path, repo_folder() / "snapshots" / kCommit);
  EXPECT_EQ(hub::resolve_model("TINY", environment).id, kRepo);
}

}  // namespace
}  // namespace godwit::hub_tests
