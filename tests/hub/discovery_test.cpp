// Finding models that are here: a cache with every fault that downloads, copies and disks leave behind, and
// the names that work as MODEL.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <set>

#include "base/error.h"
#include "fixture.h"
#include "hub/hub_paths.h"
#include "hub/local_models.h"
#include "hub/model_resolver.h"
#include "hub/snapshot_check.h"

namespace godwit::hub_tests {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOther = "fedcba9876543210fedcba9876543210fedcba98";

class Discovery : public testing::Test {
 protected:
  Discovery() {
    std::string pattern = (fs::temp_directory_path() / "godwit-models-XXXXXX").string();
    home_ = ::mkdtemp(pattern.data());
    cache_ = home_ / ".cache/huggingface/hub";
  }
  ~Discovery() override {
    std::error_code ignored;
    fs::remove_all(home_, ignored);
  }

  Environment environment() const { return Environment({{"HOME", home_.string()}}); }
  fs::path repo(const std::string& id) const { return cache_ / hub::repo_folder_name(id); }
  fs::path snapshot(const std::string& id, const std::string& commit = kCommit) const {
    return repo(id) / "snapshots" / commit;
  }

  // A good model whose snapshot links into blobs; tests then break one thing.
  void add_good(const std::string& id, const std::string& commit = kCommit) {
    add_linked(id, commit, "config.json", R"({"model_type":"llama"})");
    add_linked(id, commit, "tokenizer.json", "{}");
    add_linked(id, commit, "model.safetensors", safetensors_content(100, 1));
    write_file(repo(id) / "refs/main", commit);
  }
  void add_linked(const std::string& id, const std::string& commit, const std::string& name,
                  const std::string& content) {
    const std::string blob = "blob-of-" + name;
    write_file(repo(id) / "blobs" / blob, content);
    fs::create_directories(snapshot(id, commit));
    fs::create_symlink("../../blobs/" + blob, snapshot(id, commit) / name);
  }
  void replace(const fs::path& path, std::string_view content) {
    fs::remove(path);
    write_file(path, content);
  }

  std::string error_of(std::string_view spec, ErrorCode code) {
    try {
      const auto found = hub::resolve_model(spec, environment());
      ADD_FAILURE() << spec << " resolved to " << found.path;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), code) << e.what();
      return e.what();
    }
    return "";
  }

  struct Fault {
    const char* name;
    const char* expected;  // part of the report
    std::function<void(const std::string& id)> make;
  };

  // What can be wrong with the weights of a snapshot.
  std::vector<Fault> weight_faults() {
    const std::string shards = R"({"weight_map":{"a":"model-1.safetensors","b":"model-2.safetensors"}})";
    return {
        {"dangling-link", "link to a file that does not exist",
         [this](const std::string& id) { fs::remove(repo(id) / "blobs/blob-of-model.safetensors"); }},
        {"link-loop", "model.safetensors",
         [this](const std::string& id) {
           fs::remove(snapshot(id) / "model.safetensors");
           fs::create_symlink("model.safetensors", snapshot(id) / "model.safetensors");
         }},
        {"missing-shard", "model-2.safetensors is missing",
         [this, shards](const std::string& id) {
           add_linked(id, kCommit, "model.safetensors.index.json", shards);
           add_linked(id, kCommit, "model-1.safetensors", safetensors_content(10, 2));
         }},
        {"shard-outside", "not a file of this folder",
         [this](const std::string& id) {
           add_linked(id, kCommit, "model.safetensors.index.json",
                      R"({"weight_map":{"a":"../../../secret.safetensors"}})");
         }},
        {"broken-index", "index.json",
         [this](const std::string& id) { add_linked(id, kCommit, "model.safetensors.index.json", "{"); }},
        {"truncated-weights", "where its header announces",
         [this](const std::string& id) {
           fs::resize_file(repo(id) / "blobs/blob-of-model.safetensors", 120);
         }},
        {"absurd-header", "header of",
         [this](const std::string& id) {
           replace(repo(id) / "blobs/blob-of-model.safetensors", std::string(16, '\xff'));
         }},
        {"empty-weights", "is empty",
         [this](const std::string& id) { replace(repo(id) / "blobs/blob-of-model.safetensors", ""); }},
    };
  }

  // What can be wrong with everything else.
  std::vector<Fault> structure_faults() {
    return {
        {"empty-config", "config.json is empty",
         [this](const std::string& id) { replace(repo(id) / "blobs/blob-of-config.json", ""); }},
        {"broken-config", "config.json",
         [this](const std::string& id) { replace(repo(id) / "blobs/blob-of-config.json", "{\"a\":"); }},
        {"no-model-type", "no model_type",
         [this](const std::string& id) { replace(repo(id) / "blobs/blob-of-config.json", "[1]"); }},
        {"config-is-a-folder", "is not a file",
         [this](const std::string& id) {
           fs::remove(snapshot(id) / "config.json");
           fs::create_directories(snapshot(id) / "config.json");
         }},
        {"no-tokenizer", "no tokenizer",
         [this](const std::string& id) { fs::remove(snapshot(id) / "tokenizer.json"); }},
        {"pickle-only", "no .safetensors",
         [this](const std::string& id) {
           fs::remove(snapshot(id) / "model.safetensors");
           add_linked(id, kCommit, "pytorch_model.bin", "pickle");
         }},
        {"no-snapshot", "holds no snapshot",
         [this](const std::string& id) {
           fs::remove_all(repo(id) / "snapshots");
           fs::remove_all(repo(id) / "refs");
         }},
        {"ref-to-nothing", "has no snapshot here",
         [this](const std::string& id) { fs::remove_all(repo(id) / "snapshots"); }},
        {"broken-split", "model-00002-of-00002.gguf is missing",
         [this](const std::string& id) {
           fs::remove_all(snapshot(id));
           add_linked(id, kCommit, "model-00001-of-00002.gguf", "GGUF");
         }},
    };
  }

  fs::path home_, cache_;
};

TEST_F(Discovery, EveryFaultOfACacheIsReportedAndNotListed) {
  std::vector<Fault> faults = weight_faults();
  std::ranges::move(structure_faults(), std::back_inserter(faults));
  std::set<std::string> expected;
  for (const auto& fault : faults) {
    const std::string id = std::string("faults/") + fault.name;
    add_good(id);
    fault.make(id);
    expected.insert(id);
  }
  // Not models at all, or fine in spite of their looks:
  fs::create_directories(cache_ / "datasets--a--b/snapshots");
  write_file(cache_ / "version.txt", "1");
  write_file(cache_ / ".locks/models--a--b/x.lock", "");
  fs::create_directories(cache_ / "models--..--etc");
  add_good("good/plain");
  add_good("good/nested-ref");
  write_file(repo("good/nested-ref") / "refs/refs/pr/1", kCommit);

  const auto listing = hub::list_hub_cache(cache_);
  std::set<std::string> listed;
  for (const auto& model : listing.models) listed.insert(model.id);
  EXPECT_EQ(listed, (std::set<std::string>{"good/plain", "good/nested-ref"}));
  for (const auto& fault : faults) {
    const std::string id = std::string("faults/") + fault.name;
    const bool is_reported =
        std::any_of(listing.problems.begin(), listing.problems.end(), [&](const auto& problem) {
          return problem.id == id && problem.what.find(fault.expected) != std::string::npos;
        });
    EXPECT_TRUE(is_reported) << fault.name;
  }
  for (const auto& problem : listing.problems)
    EXPECT_TRUE(expected.contains(problem.id)) << problem.id << " " << problem.what;
}

TEST_F(Discovery, APartialDownloadAndAStrayRefAreReportedBesideAGoodModel) {
  add_good("good/model");
  write_file(repo("good/model") / "blobs/abc.incomplete", "12345");
  write_file(repo("good/model") / "refs/dev", "not a commit");
  write_file(repo("good/model") / "refs/old", kOther);
  const auto listing = hub::list_hub_cache(cache_);
  EXPECT_EQ(listing.models.size(), 1u);
  ASSERT_EQ(listing.problems.size(), 3u);
  EXPECT_NE(listing.problems[2].what.find("stopped after 5 bytes"), std::string::npos)
      << listing.problems[2].what;
}

TEST_F(Discovery, MainCountsElseTheNewestCompleteSnapshot) {
  add_good("rev/one", kOther);
  add_good("rev/one", kCommit);  // refs/main now names kCommit
  EXPECT_EQ(hub::find_snapshot(cache_, "rev/one", ""), snapshot("rev/one"));
  EXPECT_EQ(hub::find_snapshot(cache_, "rev/one", "main"), snapshot("rev/one"));
  EXPECT_EQ(hub::find_snapshot(cache_, "rev/one", "fedcba9"), snapshot("rev/one", kOther));
  EXPECT_TRUE(hub::find_snapshot(cache_, "rev/one", "v2").empty());
  fs::remove_all(repo("rev/one") / "refs");
  const auto now = fs::file_time_type::clock::now();
  fs::last_write_time(snapshot("rev/one", kOther), now - std::chrono::hours(1));
  fs::last_write_time(snapshot("rev/one"), now);
  EXPECT_EQ(hub::find_snapshot(cache_, "rev/one", ""), snapshot("rev/one"));
  fs::remove(snapshot("rev/one") / "config.json");  // the newest one breaks
  EXPECT_EQ(hub::find_snapshot(cache_, "rev/one", ""), snapshot("rev/one", kOther));
  EXPECT_EQ(hub::list_hub_cache(cache_).models.at(0).revision, kOther);
}

TEST_F(Discovery, RealFilesInsteadOfLinksAreFine) {
  write_file(snapshot("plain/files") / "config.json", R"({"model_type":"llama"})");
  write_file(snapshot("plain/files") / "tokenizer.model", "sp");
  write_file(snapshot("plain/files") / "model.safetensors", safetensors_content(10, 3));
  EXPECT_EQ(hub::list_hub_cache(cache_).models.size(), 1u);
}

TEST_F(Discovery, AReadOnlyCacheOfAnotherUserWorks) {
  add_good("good/model");
  for (const auto& entry : fs::recursive_directory_iterator(home_))
    if (!entry.is_symlink())
      fs::permissions(entry.path(), entry.is_directory() ? fs::perms(0555) : fs::perms(0444));
  fs::permissions(home_, fs::perms(0555));
  const pid_t child = ::fork();
  if (child == 0) {  // root ignores permissions, so the look is taken as nobody
    if (::geteuid() == 0 && ::setuid(65534) != 0) _exit(3);
    const bool is_read_only = ::access(cache_.c_str(), W_OK) != 0;
    try {
      const auto listing = hub::list_local_models(environment());
      const auto found = hub::resolve_model("good/model", environment());
      _exit(is_read_only && listing.models.size() == 1 && listing.problems.empty() &&
                    found.path == snapshot("good/model")
                ? 0
                : 1);
    } catch (...) {
      _exit(2);
    }
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  for (const auto& entry : fs::recursive_directory_iterator(home_))
    if (entry.is_directory() && !entry.is_symlink()) fs::permissions(entry.path(), fs::perms(0755));
  fs::permissions(home_, fs::perms(0755));
}

TEST_F(Discovery, CacheRootsFollowTheirOrder) {
  const auto root = [](std::map<std::string, std::string> values) {
    return hub::hub_cache_root(Environment(std::move(values))).string();
  };
  EXPECT_EQ(root({{"HF_HUB_CACHE", "/a"}, {"HF_HOME", "/b"}, {"XDG_CACHE_HOME", "/c"}, {"HOME", "/d"}}),
            "/a");
  EXPECT_EQ(root({{"HF_HOME", "/b"}, {"XDG_CACHE_HOME", "/c"}, {"HOME", "/d"}}), "/b/hub");
  EXPECT_EQ(root({{"XDG_CACHE_HOME", "/c"}, {"HOME", "/d"}}), "/c/huggingface/hub");
  EXPECT_EQ(root({{"HOME", "/d"}}), "/d/.cache/huggingface/hub");
  EXPECT_EQ(root({{"HF_HOME", "~/x"}, {"HOME", "/d"}}), "/d/x/hub");
}

TEST_F(Discovery, TokensComeFromTheVariableTheNamedFileOrTheUsualFile) {
  EXPECT_EQ(hub::hub_token(environment()), "");
  write_file(home_ / ".cache/huggingface/token", "usual\n");
  EXPECT_EQ(hub::hub_token(environment()), "usual");
  write_file(home_ / "named", " named \n");
  const auto named = Environment({{"HOME", home_.string()}, {"HF_TOKEN_PATH", (home_ / "named").string()}});
  EXPECT_EQ(hub::hub_token(named), "named");
  EXPECT_EQ(hub::hub_token(Environment({{"HF_TOKEN", "variable"}, {"HOME", home_.string()}})), "variable");
}

TEST_F(Discovery, ThePathsAndNamesThatWorkAsModel) {
  const auto resolved = [&](std::string_view spec) { return hub::resolve_model(spec, environment()); };
  const fs::path own = home_ / ".cache/godwit/models";
  write_file(own / "smollm2/SmolLM2.Q4_1.gguf", "GGUF");
  write_file(own / "loose.gguf", "GGUF");
  add_good("org/Llama-Small");
  EXPECT_EQ(resolved("smollm2").path, own / "smollm2/SmolLM2.Q4_1.gguf");
  EXPECT_EQ(resolved("smollm2").id, "smollm2");
  EXPECT_EQ(resolved("loose").path, own / "loose.gguf");
  EXPECT_EQ(resolved((own / "loose.gguf").string()).id, "loose");
  EXPECT_EQ(resolved((own / "smollm2").string()).path, own / "smollm2/SmolLM2.Q4_1.gguf");
  EXPECT_EQ(resolved(snapshot("org/Llama-Small").string() + "/").path,
            snapshot("org/Llama-Small").string() + "/");
  EXPECT_EQ(resolved("org/Llama-Small").path, snapshot("org/Llama-Small"));
  EXPECT_EQ(resolved(std::string("org/Llama-Small@") + kCommit).id,
            std::string("org/Llama-Small@") + kCommit);
  EXPECT_EQ(resolved("llama-small").id, "org/Llama-Small");
  EXPECT_EQ(resolved("smol").id, "smollm2");
}

TEST_F(Discovery, ARepositoryOfGgufFilesNeedsAChoice) {
  add_linked("org/gguf", kCommit, "m.Q4_0.gguf", "GGUF");
  write_file(repo("org/gguf") / "refs/main", kCommit);
  EXPECT_EQ(hub::resolve_model("org/gguf", environment()).path, snapshot("org/gguf") / "m.Q4_0.gguf");
  add_linked("org/gguf", kCommit, "m.Q8_0.gguf", "GGUF");
  const auto message = error_of("org/gguf", ErrorCode::invalid_argument);
  EXPECT_NE(message.find("org/gguf:m.Q4_0.gguf, org/gguf:m.Q8_0.gguf"), std::string::npos) << message;
  EXPECT_EQ(hub::resolve_model("org/gguf:m.Q8_0.gguf", environment()).path,
            snapshot("org/gguf") / "m.Q8_0.gguf");
  EXPECT_EQ(hub::resolve_model("q8_0", environment()).id, "org/gguf:m.Q8_0.gguf");
  error_of("org/gguf:other.gguf", ErrorCode::not_found);
}

TEST_F(Discovery, ASplitGgufIsOneModelNamedByItsFirstPart) {
  add_linked("org/split", kCommit, "m-00001-of-00002.gguf", "GGUF1");
  add_linked("org/split", kCommit, "m-00002-of-00002.gguf", "GGUF2");
  const auto listing = hub::list_hub_cache(cache_);
  ASSERT_EQ(listing.models.size(), 1u);
  EXPECT_EQ(listing.models[0].path.filename(), "m-00001-of-00002.gguf");
  EXPECT_EQ(listing.models[0].bytes, 10u);
}

TEST_F(Discovery, WhatIsMissingComesWithTheWayToGetIt) {
  EXPECT_NE(error_of("smollm2", ErrorCode::not_found).find("./dev setup smollm2"), std::string::npos);
  EXPECT_NE(error_of("org/name", ErrorCode::not_found).find("godwit get org/name"), std::string::npos);
  EXPECT_NE(error_of("nothing", ErrorCode::not_found).find("godwit get ORG/NAME"), std::string::npos);
  error_of("", ErrorCode::invalid_argument);
  add_good("a/model-x");
  add_good("b/model-y");
  const auto message = error_of("model", ErrorCode::invalid_argument);
  EXPECT_NE(message.find("a/model-x, b/model-y"), std::string::npos) << message;
  fs::remove(repo("a/model-x") / "blobs/blob-of-model.safetensors");
  EXPECT_NE(error_of("a/model-x", ErrorCode::corrupt_file).find("link to a file that does not exist"),
            std::string::npos);
  write_file(home_ / "text.txt", "x");
  error_of((home_ / "text.txt").string(), ErrorCode::invalid_argument);
}

TEST_F(Discovery, RepositoryNamesAreParsedStrictly) {
  for (const std::string bad : {"", "/", "a/", "/b", "a/b/c", "../b", "a/..", "a/b--c", "-a/b", "a/b.",
                                "a b/c", "a/b@", "a/b@../x", "a/b:../x", "a/b:", "a/\xc3\xa9"})
    EXPECT_FALSE(hub::parse_repo_spec(bad)) << bad;
  const auto spec = hub::parse_repo_spec("org/na.me_1@refs/pr/1:sub/x.gguf");
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->repo, "org/na.me_1");
  EXPECT_EQ(spec->revision, "refs/pr/1");
  EXPECT_EQ(spec->file, "sub/x.gguf");
  EXPECT_EQ(hub::repo_of_folder(hub::repo_folder_name("org/name")), "org/name");
  EXPECT_FALSE(hub::repo_of_folder("datasets--a--b"));
}

}  // namespace
}  // namespace godwit::hub_tests
