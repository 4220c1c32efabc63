#include "cache/cold_tier.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/error.h"

namespace godwit::cache {
namespace {

constexpr std::size_t kMaxSmallJobs = 1 << 16;  // touches; past it some are forgotten
constexpr std::size_t kMaxWarned = 256;

const ColdOptions& checked(const ColdOptions& options) {
  if (options.folder.empty()) fail(ErrorCode::invalid_argument, "cold", "the cache folder has no name");
  if (options.cap_bytes == 0 || options.queue_bytes == 0)
    fail(ErrorCode::invalid_argument, "cold", "{}: a cap or queue of zero bytes", options.folder.string());
  return options;
}

}  // namespace

ColdTier::ColdTier(ColdOptions options, Log log)
    : log_(std::move(log)),
      folder_(checked(options).folder, log_),
      queue_bytes_(options.queue_bytes),
      store_(folder_, options.cap_bytes, std::move(options.hooks), log_, counters_),
      thread_([this] { run(); }) {}

ColdTier::~ColdTier() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

bool ColdTier::put(ColdRecord record) {
  check_record(record);
  Job job{.work = Work::put, .key = record.key, .record = std::move(record)};
  job.bytes = record_bytes(job.record);
  {
    const std::lock_guard lock(mutex_);
    std::pair name(job.key, job.record.metadata);
    if (waiting_.contains(name)) return true;
    if (job.bytes > queue_bytes_ - queued_bytes_) {
      ++counters_.dropped;
      return false;
    }
    waiting_.insert(std::move(name));
    queued_bytes_ += job.bytes;
    jobs_.push_back(std::move(job));
  }
  changed_.notify_all();
  return true;
}

void ColdTier::add_small(Work work, const ColdKey& key) {
  {
    const std::lock_guard lock(mutex_);
    if (jobs_.size() >= kMaxSmallJobs) return;
    jobs_.push_back({.work = work, .key = key});
  }
  changed_.notify_all();
}

void ColdTier::touch(const ColdKey& key) { add_small(Work::touch, key); }

void ColdTier::clear() {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back({.work = Work::clear, .key = {}});
  }
  changed_.notify_all();
}

void ColdTier::flush() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return jobs_.empty() && !is_busy_; });
}

// Takes one record, or all small jobs of one kind up to the next record.
void ColdTier::run() {
  try {
    store_.start();
  } catch (const std::exception& e) {
    log_.warning("prompt cache on disk: {}", e.what());
  }
  std::unique_lock lock(mutex_);
  for (;;) {
    is_busy_ = false;
    changed_.notify_all();
    changed_.wait(lock, [this] { return is_ending_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    is_busy_ = true;
    std::vector<Job> taken;
    do {
      queued_bytes_ -= jobs_.front().bytes;
      taken.push_back(std::move(jobs_.front()));
      jobs_.pop_front();
    } while (taken.front().work != Work::put && !jobs_.empty() && jobs_.front().work == taken.front().work);
    if (taken.front().work == Work::put) waiting_.erase({taken.front().key, taken.front().record.metadata});
    lock.unlock();
    work(std::move(taken));
    lock.lock();
  }
}

void ColdTier::work(std::vector<Job> jobs) {
  try {
    if (jobs.front().work == Work::put) return store_.put(std::move(jobs.front().record));
    if (jobs.front().work == Work::clear) return store_.clear();
    std::vector<ColdKey> keys;
    for (const Job& job : jobs) keys.push_back(job.key);
    if (jobs.front().work == Work::touch) return store_.touch(keys);
    for (const ColdKey& key : keys) store_.forget(key);
  } catch (const std::exception&) {  // out of memory, a log that throws
    ++counters_.failed;
  }
}

void ColdTier::warn_once(const ColdKey& key, std::string_view what) {
  {
    const std::lock_guard lock(mutex_);
    if (warned_.size() >= kMaxWarned || !warned_.insert(key).second) return;
  }
  log_.warning("{}: {}; not used", folder_.record(key).string(), what);
}

// A damaged file of ours is removed, so that the record can be stored again. Others stay.
void ColdTier::refuse(const ColdKey& key, const ColdFile* file, const Error& error) {
  warn_once(key, error.what());
  if (error.code() == ErrorCode::corrupt_file) {
    ++counters_.damaged;
    if (file && file->is_ours()) file->remove_from(folder_.record(key));
  }
  add_small(Work::forget, key);
}

// The verified file of this key and signature. One of another signature is not a fault.
std::optional<ColdFile> ColdTier::open(const ColdKey& key, std::string_view signature) {
  std::optional<ColdFile> file;
  try {
    file = ColdFile::open(folder_.record(key));
    if (!file) return std::nullopt;
    const ColdHeader& header = file->load();
    if (header.key != key) {
      warn_once(key, fmt::format("holds the record {}", header.key.hex()));
      return std::nullopt;
    }
    if (header.signature != signature) return std::nullopt;
    return file;
  } catch (const Error& e) {
    refuse(key, file ? &*file : nullptr, e);
    return std::nullopt;
  }
}

bool ColdTier::contains(const ColdKey& key, std::string_view signature) {
  return open(key, signature).has_value();
}

std::optional<ColdHead> ColdTier::head(const ColdKey& key, std::string_view signature) {
  const auto file = open(key, signature);
  if (!file) return std::nullopt;
  const ColdHeader& header = file->header();
  ColdHead head{
      .parent = header.parent, .tokens = header.tokens, .metadata = header.metadata, .part_bytes = {}};
  for (const ColdPartPlace& place : header.parts) head.part_bytes.push_back(place.bytes);
  return head;
}

bool ColdTier::read(const ColdKey& key, std::string_view signature,
                    std::span<const std::span<std::byte>> into) {
  const auto file = open(key, signature);
  const bool fits = file && std::ranges::equal(
                                into, file->header().parts, {}, [](const auto& span) { return span.size(); },
                                &ColdPartPlace::bytes);
  if (!fits) {
    ++counters_.misses;
    return false;
  }
  try {
    for (std::size_t i = 0; i < into.size(); ++i) file->read_part(i, into[i]);
  } catch (const Error& e) {
    ++counters_.misses;
    refuse(key, &*file, e);
    return false;
  }
  ++counters_.hits;
  touch(key);
  return true;
}

ColdStats ColdTier::stats() const {
  const std::lock_guard lock(mutex_);
  return {.entries = counters_.entries,
          .bytes = counters_.bytes,
          .written = counters_.written,
          .present = counters_.present,
          .dropped = counters_.dropped,
          .failed = counters_.failed,
          .evicted = counters_.evicted,
          .damaged = counters_.damaged,
          .hits = counters_.hits,
          .misses = counters_.misses,
          .queued_bytes = queued_bytes_};
}

}  // namespace godwit::cache
