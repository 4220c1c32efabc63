// `godwit get` and `godwit ls` as a user runs them: what goes to which stream, exit codes, Ctrl-C.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "base/json.h"
#include "fixture.h"

namespace godwit::hub_tests {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class Verbs : public HubFixture {
 protected:
  pid_t start(std::vector<std::string> words) {
    words.insert(
        words.begin(),
        {"/usr/bin/env", "HF_HUB_CACHE=" + cache_.string(), "XDG_CACHE_HOME=" + (folder_ / "xdg").string(),
         "HF_ENDPOINT=" + hub_.endpoint(), "HF_HUB_OFFLINE=" + offline_, GODWIT_BINARY});
    const pid_t child = ::fork();
    if (child != 0) return child;
    std::vector<char*> argv;
    for (auto& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    ::dup2(::open((folder_ / "out").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644), STDOUT_FILENO);
    ::dup2(::open((folder_ / "err").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644), STDERR_FILENO);
    ::execv(argv[0], argv.data());
    _exit(127);
  }
  int finish(pid_t child) {
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }
  int run(std::vector<std::string> words) { return finish(start(std::move(words))); }
  std::string out() const { return read_file(folder_ / "out"); }
  std::string err() const { return read_file(folder_ / "err"); }

  std::string offline_;
};

TEST_F(Verbs, GetPrintsOnlyTheSnapshotOnStdoutAndProgressOnStderr) {
  publish(300'000);
  ASSERT_EQ(run({"get", kRepo}), 0) << err();
  EXPECT_EQ(out(), (repo_folder() / "snapshots" / kCommit).string() + "\n");
  EXPECT_NE(err().find(" %  "), std::string::npos) << err();
  EXPECT_EQ(err().find('\x1b'), std::string::npos) << "bars are for terminals";
  expect_complete();
  ASSERT_EQ(run({"get", kRepo, "--quiet"}), 0);
  EXPECT_EQ(err(), "");
}

TEST_F(Verbs, GetPrintsItsResultAsJson) {
  publish(300'000);
  ASSERT_EQ(run({"get", std::string(kRepo) + "@main", "--json"}), 0) << err();
  const Json result = parse_json(out(), "stdout");
  EXPECT_EQ(result["repo"], kRepo);
  EXPECT_EQ(result["commit"], kCommit);
  EXPECT_EQ(result["path"], (repo_folder() / "snapshots" / kCommit).string());
  EXPECT_EQ(result["files"].size(), 4u);
  EXPECT_GT(result["fetched"].get<int>(), 300'000);
}

TEST_F(Verbs, GetHonoursIncludeExcludeAndDryRun) {
  publish(300'000);
  ASSERT_EQ(
      run({"get", kRepo, "--include", "*.json", "--include", "sub/*", "--exclude", "token*", "--dry-run"}), 0)
      << err();
  EXPECT_NE(out().find("config.json"), std::string::npos);
  EXPECT_NE(out().find("sub/notes.txt"), std::string::npos);
  EXPECT_EQ(out().find("tokenizer.json"), std::string::npos);
  EXPECT_FALSE(fs::exists(cache_));
  ASSERT_EQ(run({"get", kRepo, "--include", "*.bin", "--quiet"}), 0) << err();
  EXPECT_EQ(files_below(repo_folder() / "snapshots" / kCommit),
            std::vector<std::string>{"pytorch_model.bin"});
}

TEST_F(Verbs, AWrongRepositoryNameIsAUsageErrorAndAnUnknownOneAFailure) {
  publish(10);
  EXPECT_EQ(run({"get", "a/b/c"}), 2);
  EXPECT_EQ(run({"get"}), 2);
  EXPECT_EQ(run({"get", kRepo, "--no-such-flag"}), 2);
  EXPECT_EQ(run({"get", "no/such-model"}), 1);
  EXPECT_NE(err().find("no/such-model"), std::string::npos) << err();
  EXPECT_EQ(out(), "");
}

TEST_F(Verbs, CtrlCLeavesWith130WithinASecondAndKeepsThePartialFile) {
  publish(300'000);
  hub_.set_hook([](const HubRequest& request, HubReply& reply) {
    if (!request.target.ends_with(kWeights)) return;
    reply.cut_after = 100'000;
    reply.hang_at_cut = true;
  });
  const pid_t child = start({"get", kRepo});
  const auto size = [&] {
    std::error_code error;
    const auto bytes = fs::file_size(partial(), error);
    return error ? 0 : bytes;
  };
  for (int waited = 0; size() < 100'000 && waited < 2000; ++waited) std::this_thread::sleep_for(10ms);
  ASSERT_EQ(size(), 100'000u) << err();
  const auto pressed = std::chrono::steady_clock::now();
  ::kill(child, SIGINT);
  EXPECT_EQ(finish(child), 130);
  EXPECT_LT(std::chrono::steady_clock::now() - pressed, 1s);
  EXPECT_EQ(size(), 100'000u);
  EXPECT_FALSE(fs::exists(ref()));
  hub_.set_hook({});
  ASSERT_EQ(run({"get", kRepo}), 0) << err();
  expect_complete();
}

TEST_F(Verbs, OfflineOpensNoConnection) {
  publish(10);
  offline_ = "1";
  EXPECT_EQ(run({"get", kRepo}), 1);
  EXPECT_EQ(hub_.connections(), 0);
}

TEST_F(Verbs, LsShowsWhatCanBeUsedAndOnRequestWhatCannot) {
  files_ = {
      {"config.json",
       R"({"model_type":"llama","hidden_size":64,"num_hidden_layers":1,"intermediate_size":64,"num_attention_heads":2,
                 "num_key_value_heads":2,"vocab_size":100,"rms_norm_eps":1e-5,"max_position_embeddings":2048,
                 "quantization":{"bits":4,"group_size":64}})"},
      {"tokenizer.json", "{}"},
      {kWeights, safetensors_content(1000, 5), true}};
  hub_.add_repo(kRepo, kCommit, files_);
  get();
  fs::path other = cache_ / "models--godwit-tests--strange/snapshots" / kCommit;
  fs::create_directories(other.parent_path());
  fs::copy(repo_folder() / "snapshots" / kCommit, other);  // follows the links
  std::string config = files_[0].content;
  config.replace(config.find("llama"), 5, "no_such_family");
  write_file(other / "config.json", config);
  write_file(cache_ / "models--godwit-tests--broken/snapshots" / kCommit / "config.json", "{");

  ASSERT_EQ(run({"ls", "--json"}), 0) << err();
  const Json list = parse_json(out(), "stdout");
  ASSERT_EQ(list["models"].size(), 2u) << out();
  EXPECT_EQ(list["models"][1]["id"], kRepo);
  EXPECT_EQ(list["models"][1]["architecture"], "llama");
  EXPECT_EQ(list["models"][1]["context"], 2048);
  EXPECT_EQ(list["models"][1]["quantization"], "affine 4-bit group 64");
  EXPECT_TRUE(list["models"][1]["refused"].is_null()) << out();
  EXPECT_NE(list["models"][0]["refused"].get<std::string>().find("no_such_family"), std::string::npos);
  EXPECT_FALSE(list["problems"].empty());

  ASSERT_EQ(run({"ls"}), 0);
  EXPECT_NE(out().find(kRepo), std::string::npos);
  EXPECT_EQ(out().find("strange"), std::string::npos);
  ASSERT_EQ(run({"ls", "-v"}), 0);
  EXPECT_NE(out().find("refused: godwit-tests/strange"), std::string::npos) << out();
  EXPECT_NE(out().find("broken: godwit-tests/broken"), std::string::npos) << out();
}

}  // namespace
}  // namespace godwit::hub_tests
