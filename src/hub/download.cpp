#include "hub/download.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

#include "base/checked.h"
#include "base/error.h"
#include "hub/blob_fetch.h"
#include "hub/cache_writer.h"
#include "hub/hub_paths.h"
#include "hub/local_models.h"
#include "hub/snapshot_check.h"

namespace godwit::hub {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kPublicHub = "https://huggingface.co";
constexpr std::size_t kMaxListing = 64 << 20;

// Names that share one blob; it is fetched once.
struct BlobGroup {
  std::vector<RepoFile> names;
  FileCounters counters;
};

// The listing, tried again like any other request.
RepoListing ask_for_listing(const GetRequest& request, const HubOptions& options, const StopCheck& stop,
                            const Log& log) {
  const HttpRequest http{.url = listing_url(options.endpoint, request.repo, request.revision),
                         .bearer_token = options.token};
  HttpClient client(options.http, stop);
  for (int failures = 1;; ++failures) {
    std::string body, why;
    std::optional<std::string> retry_after;
    try {
      const HttpHead head = client.get(http, [&](const HttpHead&, std::span<const std::byte> piece) {
        if (body.size() + piece.size() > kMaxListing)
          fail(ErrorCode::network, "hub", "{}: the listing is longer than {} bytes", http.url, kMaxListing);
        body.append(reinterpret_cast<const char*>(piece.data()), piece.size());
      });
      if (!is_retriable_status(head.status)) {
        require_success(head, options.endpoint, request.repo, request.revision, !options.token.empty());
        return parse_repo_listing(body, http.url);
      }
      why = fmt::format("{} answered status {}", options.endpoint, head.status);
      retry_after = head.header("retry-after");
    } catch (const TransferError& e) {
      if (!e.retriable) throw;
      why = e.what();
    }
    const auto delay = retry_delay(options.retry, failures, retry_after);
    if (failures >= options.retry.attempts || !delay)
      fail(ErrorCode::network, "hub", "giving up after {} tries: {}", failures, why);
    log.warning("{}; trying again in {} ms", why, delay->count());
    interruptible_sleep(*delay, stop);
  }
}

GetResult make_plan(const GetRequest& request, const std::string& commit, const std::vector<RepoFile>& files,
                    const CacheWriter& cache) {
  GetResult plan{.repo = request.repo,
                 .revision = request.revision,
                 .commit = commit,
                 .snapshot = cache.snapshot(),
                 .files = {}};
  for (const auto& file : files) {
    plan.files.push_back({file.name, file.size, cache.missing_bytes(file)});
    plan.size = checked_add(plan.size, file.size, file.name);
    plan.missing = checked_add(plan.missing, plan.files.back().missing, file.name);
  }
  return plan;
}

void require_disk_space(const GetResult& plan, const HubOptions& options) {
  if (plan.missing == 0) return;
  const auto needed = checked_add(plan.missing, options.disk_reserve, "disk space");
  const auto free = options.disk.free_bytes(options.cache_root);
  if (free < needed)
    fail(ErrorCode::io, "hub", "{} has {} MB free; {} needs {} MB more and {} MB must stay free",
         options.cache_root.string(), free / 1000000, plan.repo, plan.missing / 1000000,
         options.disk_reserve / 1000000);
}

std::vector<std::unique_ptr<BlobGroup>> group_by_blob(const std::vector<RepoFile>& files) {
  std::map<std::string, std::size_t> index;
  std::vector<std::unique_ptr<BlobGroup>> groups;
  for (const auto& file : files) {
    const auto [at, is_new] = index.emplace(file.hash, groups.size());
    if (is_new) groups.push_back(std::make_unique<BlobGroup>());
    groups[at->second]->names.push_back(file);
  }
  // Small files first: a wrong token or a full disk shows before the large transfer starts.
  std::stable_sort(groups.begin(), groups.end(),
                   [](const auto& a, const auto& b) { return a->names[0].size < b->names[0].size; });
  return groups;
}

GetProgress snapshot_of(const std::vector<std::unique_ptr<BlobGroup>>& groups) {
  GetProgress progress;
  for (const auto& group : groups) {
    for (const auto& file : group->names) {
      progress.files.push_back({file.name, file.size, group->counters.here, group->counters.stage});
      progress.size += file.size;
      progress.here += progress.files.back().here;
    }
    progress.fetched += group->counters.fetched;
  }
  return progress;
}

// A few threads over one list; the first failure stops the others, and run() throws it.
class DownloadPool {
 public:
  DownloadPool(const GetRequest& request, const HubOptions& options, const CacheWriter& cache,
               std::string commit, const StopCheck& stop, const Log& log,
               std::vector<std::unique_ptr<BlobGroup>>& groups)
      : request_(request),
        options_(options),
        cache_(cache),
        commit_(std::move(commit)),
        log_(log),
        groups_(groups),
        stop_([this, &stop] { return is_stopping_ || (stop && stop()); }) {}

  void run(const ProgressSink& progress) {
    const auto count =
        std::clamp<std::size_t>(static_cast<std::size_t>(options_.parallel), 1, groups_.size());
    running_ = count;
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < count; ++i) threads.emplace_back([this] { work(); });
    wait(progress);
    threads.clear();  // joins
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void work() {
    try {
      HttpClient http(options_.http, stop_);
      for (std::size_t i = next_++; i < groups_.size() && !is_stopping_; i = next_++)
        fetch(*groups_[i], http);
    } catch (...) {
      const std::lock_guard guard(mutex_);
      if (!failure_) failure_ = std::current_exception();
      is_stopping_ = true;
    }
    const std::lock_guard guard(mutex_);
    --running_;
    changed_.notify_all();
  }

  void fetch(BlobGroup& group, HttpClient& http) {
    const auto& names = group.names;
    if (std::all_of(names.begin(), names.end(),
                    [&](const RepoFile& f) { return cache_.is_plain_file_here(f); })) {
      group.counters.here = names[0].size;
      group.counters.stage = FileStage::done;
      return;
    }
    const BlobJob job{.file = names[0],
                      .repo = request_.repo,
                      .commit = commit_,
                      .endpoint = options_.endpoint,
                      .token = options_.token,
                      .blob = cache_.blob(names[0]),
                      .lock = cache_.lock(names[0])};
    fetch_blob(job, {http, options_.disk, options_.retry, stop_, log_}, group.counters);
    for (std::size_t i = 0; i < names.size(); ++i) cache_.link(names[i], i + 1 == names.size());
  }

  void wait(const ProgressSink& progress) {
    std::unique_lock guard(mutex_);
    while (running_ > 0) {
      changed_.wait_for(guard, std::chrono::milliseconds(100));
      guard.unlock();
      try {
        if (progress) progress(snapshot_of(groups_));
      } catch (...) {
        guard.lock();
        if (!failure_) failure_ = std::current_exception();
        is_stopping_ = true;
        guard.unlock();
      }
      guard.lock();
    }
  }

  const GetRequest& request_;
  const HubOptions& options_;
  const CacheWriter& cache_;
  const std::string commit_;
  const Log& log_;
  std::vector<std::unique_ptr<BlobGroup>>& groups_;
  std::atomic<bool> is_stopping_ = false;
  std::atomic<std::size_t> next_ = 0;
  const StopCheck stop_;
  std::mutex mutex_;  // guards running_ and failure_
  std::condition_variable changed_;
  std::size_t running_ = 0;
  std::exception_ptr failure_;
};

// Without a network only what is here already can be given, and only when it is complete.
GetResult from_cache_only(const GetRequest& request, const HubOptions& options) {
  const auto snapshot = find_snapshot(options.cache_root, request.repo, request.revision);
  if (snapshot.empty())
    fail(ErrorCode::network, "hub", "HF_HUB_OFFLINE is set and {} (revision {}) is not in {}", request.repo,
         request.revision, options.cache_root.string());
  std::string fault;
  if (const auto& file = request.choice.file; file.empty()) {
    const FolderCheck check = check_folder(snapshot);
    if (!check.problems.empty()) fault = check.problems.front();
  } else if (std::error_code error; !fs::is_regular_file(snapshot / file, error)) {
    fault = file + " is missing";
  }
  if (!fault.empty())
    fail(ErrorCode::network, "hub", "HF_HUB_OFFLINE is set and {} is incomplete here: {}", request.repo,
         fault);
  return {.repo = request.repo,
          .revision = request.revision,
          .commit = snapshot.filename().string(),
          .snapshot = snapshot,
          .files = {}};
}

}  // namespace

HubOptions hub_options(const Environment& environment) {
  HubOptions options;
  options.cache_root = hub_cache_root(environment);
  options.endpoint = environment.get("HF_ENDPOINT").value_or(std::string(kPublicHub));
  while (options.endpoint.ends_with('/')) options.endpoint.pop_back();
  options.token = hub_token(environment);
  options.offline = is_offline(environment);
  options.http.ca_file = environment.get("SSL_CERT_FILE").value_or("");
  return options;
}

GetResult get_repository(const GetRequest& request, const HubOptions& options, const ProgressSink& progress,
                         const StopCheck& stop, const Log& log) {
  const auto spec = parse_repo_spec(request.repo);
  if (!spec || !spec->revision.empty() || !spec->file.empty())
    fail(ErrorCode::invalid_argument, "hub", "\"{}\" is not the name of a repository (ORG/NAME)",
         request.repo);
  if (!is_safe_relative_path(request.revision))
    fail(ErrorCode::invalid_argument, "hub", "\"{}\" is not a revision", request.revision);
  if (options.offline) return from_cache_only(request, options);
  const RepoListing listing = ask_for_listing(request, options, stop, log);
  const auto files = choose_files(listing.files, request.choice, request.repo);
  const CacheWriter cache(options.cache_root, request.repo, listing.commit, options.disk);
  GetResult result = make_plan(request, listing.commit, files, cache);
  if (request.dry_run) return result;
  require_disk_space(result, options);
  auto groups = group_by_blob(files);
  DownloadPool(request, options, cache, listing.commit, stop, log, groups).run(progress);
  cache.write_ref(request.revision);
  result.fetched = snapshot_of(groups).fetched;
  return result;
}

}  // namespace godwit::hub
