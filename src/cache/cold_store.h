// What the writer's thread of the cold tier does: records into files, the index along with them, the size
// cap. Nothing here throws for what it finds on disk: a failure is a warning, and the record is not stored.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "cache/cold_file.h"
#include "cache/cold_folder.h"
#include "cache/cold_index.h"

namespace godwit::cache {

// Written by any thread, read by stats().
struct ColdCounters {
  std::atomic<std::uint64_t> written{0}, present{0}, dropped{0}, failed{0}, evicted{0}, hits{0}, misses{0},
      damaged{0}, entries{0}, bytes{0}, losses{0};
};

class ColdStore {
 public:
  ColdStore(const ColdFolder& folder, std::uint64_t cap_bytes, ColdHooks hooks, const Log& log,
            ColdCounters& counters);

  // Opens the index, brings it in line with the files and removes what dead writers left.
  void start();
  void put(ColdRecord record);
  void touch(std::span<const ColdKey> keys);
  void forget(const ColdKey& key);  // its file is gone
  void clear();                     // removes every record, of every signature and process

 private:
  // What lies under the name of a record that is to be stored.
  enum class Found { nothing, all, foreign };

  // Runs `work`; an index found damaged is made again and `work` tried once more, and so it is, a few times, when somebody
  // deletes the index meanwhile.
  template <typename Work>
  bool guarded(Work work);
  void warn(const char* kind, std::string_view what);
  void open_index();
  void erase_damaged_index();
  void reconcile();
  std::vector<std::pair<std::int64_t, ColdRow>> strangers(const std::vector<ColdKey>& known,
                                                          std::vector<ColdKey>& seen);
  std::optional<std::pair<std::int64_t, ColdRow>> adopt(const ColdKey& key);
  Found look(ColdRecord& record) const;
  void use(const ColdRecord& record);
  bool write(const ColdRecord& record);
  bool publish(const ColdRecord& record, ColdTemp& temp);
  bool make_room(const ColdKey* keep, std::uint64_t most);
  std::uint64_t room() const;
  void count();

  const ColdFolder& folder_;
  std::uint64_t cap_bytes_;
  ColdHooks hooks_;
  const Log& log_;
  ColdCounters& counters_;
  std::optional<ColdIndex> index_;
  std::map<std::string, std::chrono::steady_clock::time_point> warned_;  // when each kind of trouble was last said
};

}  // namespace godwit::cache
