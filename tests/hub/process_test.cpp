// Downloads in other processes: killed at any byte, two at once, and side by side with huggingface_hub.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <random>
#include <thread>

#include "base/json.h"
#include "fixture.h"
#include "hub/local_models.h"
#include "hub/model_resolver.h"

namespace godwit::hub_tests {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

pid_t start(const std::vector<std::string>& words, const fs::path& output) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  std::vector<char*> argv;
  for (const auto& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const int file = ::open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  ::dup2(file, STDOUT_FILENO);
  ::dup2(file, STDERR_FILENO);
  ::execv(argv[0], argv.data());
  _exit(127);
}

// A Python string literal.
std::string quoted(const fs::path& text) { return dump_json(Json(text.string())); }

// Exit code, or 1000 + signal.
int wait_for(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

class Processes : public HubFixture {
 protected:
  pid_t start_driver() { return start({GODWIT_HUB_DRIVER, cache_.string(), hub_.endpoint(), kRepo}, log()); }
  fs::path log() const { return folder_ / "log"; }

  int run_python(const std::string& code) {
    const fs::path script = folder_ / "script.py";
    write_file(script, code);
    return wait_for(start({"/usr/bin/env", "HF_HUB_CACHE=" + cache_.string(),
                           "HF_HOME=" + (folder_ / "hf").string(), "HF_ENDPOINT=" + hub_.endpoint(),
                           "HF_HUB_DISABLE_TELEMETRY=1", GODWIT_ORACLE_PYTHON, script.string()},
                          log()));
  }
};

TEST_F(Processes, ADownloadKilledAtAnyByteIsFinishedByTheNextOne) {
  constexpr std::size_t kSize = 2 << 20;
  constexpr std::uint64_t kAllowance = 1 << 20;
  const auto seed = static_cast<unsigned>(std::random_device{}());
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 generator(seed);
  publish(kSize);
  hub_.set_hook([](const HubRequest& request, HubReply& reply) {
    if (!request.target.ends_with(kWeights)) return;
    reply.piece = 16 * 1024;
    reply.pause = 100us;
  });
  const std::uint64_t whole = files_.back().content.size();
  int kills_in_flight = 0;
  for (int trial = 0; trial < 50; ++trial) {
    fs::remove_all(cache_);
    const std::uint64_t before = hub_.bytes_of(kWeights);
    const std::uint64_t kill_at = before + std::uniform_int_distribution<std::uint64_t>(0, whole)(generator);
    const pid_t child = start_driver();
    for (int waited = 0; hub_.bytes_of(kWeights) < kill_at && waited < 20'000; ++waited)
      std::this_thread::sleep_for(500us);
    ::kill(child, SIGKILL);
    if (wait_for(child) == 1000 + SIGKILL) {
      ++kills_in_flight;
      EXPECT_FALSE(fs::exists(ref()) && fs::exists(partial()));
    }
    ASSERT_EQ(wait_for(start_driver()), 0) << read_file(log());
    expect_complete();
    EXPECT_LE(hub_.bytes_of(kWeights) - before, whole + kAllowance) << "trial " << trial;
    if (HasFailure()) return;
  }
  EXPECT_GE(kills_in_flight, 40);  // else the test killed nothing
}

TEST_F(Processes, TwoDownloadsOfOneModelFetchItOnce) {
  publish(1 << 20);
  hub_.set_hook([](const HubRequest& request, HubReply& reply) {
    if (!request.target.ends_with(kWeights)) return;
    reply.piece = 16 * 1024;
    reply.pause = 2ms;
  });
  const pid_t first = start_driver(), second = start_driver();
  EXPECT_EQ(wait_for(first), 0) << read_file(log());
  EXPECT_EQ(wait_for(second), 0) << read_file(log());
  expect_complete();
  EXPECT_EQ(hub_.bytes_of(kWeights), files_.back().content.size());
  EXPECT_EQ(hub_.file_requests(kWeights), 1u);
}

TEST_F(Processes, ALockHeldByHuggingfaceHubIsWaitedFor) {
  publish(1000);
  const auto blob = partial().stem().string();
  const fs::path lock = cache_ / ".locks" / repo_folder().filename() / (blob + ".lock");
  const fs::path script = folder_ / "lock.py";
  write_file(script, fmt::format("import pathlib, time\n"
                                 "from huggingface_hub.utils import WeakFileLock\n"
                                 "pathlib.Path({0}).parent.mkdir(parents=True, exist_ok=True)\n"
                                 "with WeakFileLock({0}):\n"
                                 "    open({1}, 'w').close()\n"
                                 "    time.sleep(0.7)\n"
                                 "    open({2}, 'w').close()\n",
                                 quoted(lock), quoted(folder_ / "held"), quoted(folder_ / "released")));
  const pid_t python = start({GODWIT_ORACLE_PYTHON, script.string()}, log());
  for (int waited = 0; !fs::exists(folder_ / "held") && waited < 2000; ++waited)
    std::this_thread::sleep_for(10ms);
  ASSERT_TRUE(fs::exists(folder_ / "held")) << read_file(log());
  get();
  EXPECT_TRUE(fs::exists(folder_ / "released"));
  EXPECT_EQ(wait_for(python), 0) << read_file(log());
  expect_complete();
}

TEST_F(Processes, HuggingfaceHubSeesOurDownloadAsComplete) {
  publish(50'000);
  const auto ours = get();
  ASSERT_EQ(run_python(fmt::format(
                "import huggingface_hub as h, os\n"
                "path = h.snapshot_download({0}, local_files_only=True)\n"
                "assert os.path.realpath(path) == os.path.realpath({1}), path\n"
                "assert os.path.exists(h.try_to_load_from_cache({0}, 'config.json'))\n"
                "info = h.scan_cache_dir()\n"
                "assert not info.warnings, info.warnings\n"
                "repo, = info.repos\n"
                "assert repo.repo_id == {0} and {{r.commit_hash for r in repo.revisions}} == {{{2}}}\n"
                "assert repo.refs['main'].commit_hash == {2}\n",
                quoted(kRepo), quoted(ours.snapshot), quoted(kCommit))),
            0)
      << read_file(log());
}

TEST_F(Processes, WeSeeADownloadOfHuggingfaceHubAsComplete) {
  publish(50'000);
  ASSERT_EQ(run_python(fmt::format(
                "import huggingface_hub as h\nh.snapshot_download({}, ignore_patterns=['*.bin'])\n",
                quoted(kRepo))),
            0)
      << read_file(log());
  const auto listing = hub::list_hub_cache(cache_);
  ASSERT_EQ(listing.models.size(), 1u);
  EXPECT_EQ(listing.models[0].id, kRepo);
  EXPECT_TRUE(listing.problems.empty()) << listing.problems[0].what;
  const auto before = hub_.bytes_of(kWeights);
  EXPECT_EQ(get().fetched, 0u);
  EXPECT_EQ(hub_.bytes_of(kWeights), before);
  expect_complete();
}

}  // namespace
}  // namespace godwit::hub_tests
