#include "hub/blob_fetch.h"

#include <algorithm>
#include <optional>
#include <system_error>

#include "base/error.h"
#include "hub/blob_lock.h"
#include "hub/partial_file.h"

namespace godwit::hub {
namespace fs = std::filesystem;
namespace {

// A complete answer that cannot be used, or a status worth another try. Internal to this file.
struct TryAgain {
  std::string why;
  std::optional<std::string> retry_after;
};

bool is_complete(const fs::path& path, std::uint64_t size) {
  std::error_code error;
  return fs::is_regular_file(path, error) && fs::file_size(path, error) == size && !error;
}

void throw_if_stopped(const StopCheck& stop) {
  if (stop && stop()) fail(ErrorCode::cancelled, "hub", "stopped on request");
}

// "bytes FIRST-LAST/TOTAL"; TOTAL may be '*'.
bool continues_at(const std::string& range, std::uint64_t first, std::uint64_t total) {
  const std::string start = fmt::format("bytes {}-", first);
  if (!range.starts_with(start)) return false;
  const auto slash = range.find('/');
  return slash != range.npos &&
         (range.substr(slash + 1) == "*" || range.substr(slash + 1) == fmt::format("{}", total));
}

// One GET, from the first look at its head to its last byte.
class Transfer {
 public:
  Transfer(const BlobJob& job, PartialFile& partial, FileCounters& counters)
      : job_(job), partial_(partial), counters_(counters) {}

  void run(HttpClient& http) {
    const HttpRequest request{.url = file_url(job_.endpoint, job_.repo, job_.commit, job_.file.name),
                              .bearer_token = job_.token,
                              .range_from = partial_.size()};
    const HttpHead head = http.get(request, [this](const HttpHead& h, std::span<const std::byte> piece) {
      if (!is_started_) start(h);
      if (!wanted_) return;
      partial_.append(piece);
      counters_.here = partial_.size();
      counters_.fetched += piece.size();
    });
    if (!is_started_) start(head);
    if (wanted_ && !partial_.is_full())
      throw TryAgain{fmt::format("ended after {} of {} bytes", partial_.size(), job_.file.size), {}};
  }

 private:
  void start(const HttpHead& head) {
    is_started_ = true;
    wanted_ = false;
    if (is_retriable_status(head.status))
      throw TryAgain{fmt::format("status {}", head.status), head.header("retry-after")};
    if (head.status == 416) {
      partial_.restart();
      throw TryAgain{"the server refuses to continue a partial download; starting again", {}};
    }
    require_success(head, job_.endpoint, job_.repo, job_.commit, !job_.token.empty());
    if (head.status == 206) {
      const auto range = head.header("content-range").value_or("");
      if (!continues_at(range, partial_.size(), job_.file.size)) {
        partial_.restart();
        throw TryAgain{fmt::format("unusable Content-Range \"{}\"; starting again", range), {}};
      }
    } else if (head.status == 200) {
      if (partial_.size() > 0) partial_.restart();  // the server ignores ranges
    } else {
      fail(ErrorCode::network, "hub", "{}: unexpected status {}", job_.file.name, head.status);
    }
    wanted_ = true;
    counters_.here = partial_.size();
  }

  const BlobJob& job_;
  PartialFile& partial_;
  FileCounters& counters_;
  bool is_started_ = false;
  bool wanted_ = false;
};

// Until the partial file is full. `furthest` keeps a server that drops every transfer from holding us for
// ever.
void fill(const BlobJob& job, const BlobTools& tools, PartialFile& partial, FileCounters& counters) {
  std::uint64_t furthest = partial.size();
  int failures = 0;
  while (!partial.is_full()) {
    throw_if_stopped(tools.stop);
    counters.stage = FileStage::downloading;
    TryAgain reason;
    try {
      Transfer(job, partial, counters).run(tools.http);
      continue;
    } catch (const TransferError& e) {
      if (!e.retriable) throw;
      reason.why = e.what();
    } catch (const TryAgain& again) {
      reason = again;
    }
    failures = partial.size() > furthest ? 1 : failures + 1;
    furthest = std::max(furthest, partial.size());
    const auto delay = retry_delay(tools.retry, failures, reason.retry_after);
    if (failures >= tools.retry.attempts || !delay)
      fail(ErrorCode::network, "hub", "{}: giving up after {} tries: {}", job.file.name, failures,
           reason.why);
    tools.log.warning("{}: {}; trying again in {} ms", job.file.name, reason.why, delay->count());
    interruptible_sleep(*delay, tools.stop);
  }
}

// Fills and verifies one partial file. False: the bytes were wrong and the file is gone.
bool fetch_once(const BlobJob& job, const BlobTools& tools, FileCounters& counters) {
  const fs::path path = job.blob.string() + ".incomplete";
  PartialFile partial(path, job.file, tools.disk);
  counters.stage = FileStage::hashing;
  partial.rehash([&](std::uint64_t done) {
    counters.here = done;
    throw_if_stopped(tools.stop);
  });
  bool is_right = false;
  try {
    fill(job, tools, partial, counters);
    is_right = partial.verify();
  } catch (const Error& e) {
    if (e.code() != ErrorCode::corrupt_file) throw;  // anything else keeps what has arrived
    tools.log.warning("{}", e.what());
  }
  if (is_right) {
    partial.publish(job.blob);
    return true;
  }
  counters.here = 0;
  std::error_code ignored;
  fs::remove(path, ignored);
  return false;
}

}  // namespace

bool fetch_blob(const BlobJob& job, const BlobTools& tools, FileCounters& counters) {
  const auto finish = [&](bool is_new) {
    counters.here = job.file.size;
    counters.stage = FileStage::done;
    return is_new;
  };
  if (is_complete(job.blob, job.file.size)) return finish(false);
  counters.stage = FileStage::locked;
  const BlobLock lock(job.lock, tools.stop);
  if (is_complete(job.blob, job.file.size)) return finish(false);  // fetched by whoever held the lock
  make_folders(job.blob.parent_path());
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (fetch_once(job, tools, counters)) return finish(true);
    if (attempt == 0) tools.log.warning("{}: wrong checksum; downloading it once more", job.file.name);
  }
  fail(ErrorCode::corrupt_file, "hub",
       "{}: the server's bytes do not have the checksum it announced ({}), twice", job.file.name,
       job.file.hash);
}

}  // namespace godwit::hub
