// The cold tier of the prefix cache: records on disk that outlive the process. It knows nothing of rows or
// blocks; a record is a key, a signature, and spans of bytes (cold_record.h). docs/prompt-cache.md describes
// the files.
//
// Records are written behind the caller's back by one thread. Lookups read files directly and work whatever
// state the index is in. Whatever is wrong on disk is a miss and a warning, never an exception. Several
// processes may share a folder, and several signatures.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"
#include "cache/cold_file.h"
#include "cache/cold_folder.h"
#include "cache/cold_record.h"
#include "cache/cold_store.h"

namespace godwit::cache {

struct ColdOptions {
  std::filesystem::path folder;
  std::uint64_t cap_bytes = std::uint64_t{32} << 30;   // of all files in the folder, of every signature
  std::uint64_t queue_bytes = std::uint64_t{2} << 30;  // of records that wait; one more may be in writing
  ColdHooks hooks = {};                                     // for tests
};

struct ColdHead {
  ColdKey parent;
  std::vector<int> tokens;
  std::string metadata;
  std::vector<std::uint64_t> part_bytes;
};

struct ColdStats {
  std::uint64_t entries = 0, bytes = 0;  // in the folder, as of the last change made here
  std::uint64_t written = 0;             // records stored
  std::uint64_t present = 0;             // put again while stored already
  std::uint64_t dropped = 0;             // not taken by a full queue, or found no room or no record to follow
  std::uint64_t failed = 0;              // could not be written
  std::uint64_t evicted = 0, damaged = 0;
  std::uint64_t hits = 0, misses = 0;  // of read()
  std::uint64_t queued_bytes = 0;
};

// All functions may be called from any thread.
class ColdTier {
 public:
  // Throws Error{invalid_argument} for an empty path or a cap or queue of zero, Error{io} for a folder that
  // cannot be made or listed. A folder that cannot be written serves what it holds.
  ColdTier(ColdOptions options, Log log);
  ~ColdTier();  // writes what is queued
  ColdTier(const ColdTier&) = delete;
  ColdTier& operator=(const ColdTier&) = delete;

  // Queues. False when more than queue_bytes would wait: nothing is kept of the record, and what follows it is useless
  // without it. What is queued stays, so a chain of records is written from its root on. The parts' owners are released
  // on the writer's thread. Throws Error{invalid_argument} for a record past the limits of cold_record.h.
  bool put(ColdRecord record);

  // Whether a file of this key and signature is there and its header is right. Queued records are not there
  // yet.
  bool contains(const ColdKey& key, std::string_view signature);
  std::optional<ColdHead> head(const ColdKey& key, std::string_view signature);

  // Fills one span for each part, of the sizes that head() told. False is a miss, and the spans then hold
  // anything: hand it fresh buffers. A hit counts as a use.
  bool read(const ColdKey& key, std::string_view signature, std::span<const std::span<std::byte>> into);

  void touch(const ColdKey& key);  // a use that read() did not see
  // Removes all records of the folder, behind what is queued. Does not wait.
  void clear();
  void flush();                    // waits until nothing is queued or in work
  ColdStats stats() const;
  // Grows when records were found to be gone that this process did not take out: what was put before may be missing.
  std::uint64_t losses() const { return counters_.losses; }

 private:
  enum class Work { put, touch, forget, clear };
  struct Job {
    Work work;
    ColdKey key;
    ColdRecord record = {};
    std::uint64_t bytes = 0;
  };

  std::optional<ColdFile> open(const ColdKey& key, std::string_view signature);
  void refuse(const ColdKey& key, const ColdFile* file, const Error& error);
  void warn_once(const ColdKey& key, std::string_view what);
  void add_small(Work work, const ColdKey& key);
  void run();
  void work(std::vector<Job> jobs);

  const Log log_;
  const ColdFolder folder_;
  const std::uint64_t queue_bytes_;
  ColdCounters counters_;
  ColdStore store_;  // the thread's alone

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  std::set<std::pair<ColdKey, std::string>> waiting_;  // keys and metadata of queued records
  std::set<ColdKey> warned_;
  std::uint64_t queued_bytes_ = 0;
  bool is_busy_ = true;  // until the thread has started up
  bool is_ending_ = false;

  std::thread thread_;  // last: it uses the rest
};

}  // namespace godwit::cache
