#include "cache/cold_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>

namespace godwit::cache {
namespace {

constexpr std::chrono::minutes kQuiet{10};
constexpr int kMaxDeletions = 8;  // of the index during one piece of work, before it is given up

ColdHash hash_of(std::string_view text) {
  ColdHasher hash;
  hash.update(std::as_bytes(std::span(text)));
  return hash.digest();
}

bool is_missing(const std::filesystem::path& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

// Only a file that starts as ours do: what else lies under this name belongs to somebody.
void remove_ours(const std::filesystem::path& path) {
  try {
    const auto file = ColdFile::open(path);
    if (file && file->is_ours()) file->remove_from(path);
  } catch (const Error&) {
    // not a regular file, or not readable: not ours to remove
  }
}

}  // namespace

ColdStore::ColdStore(const ColdFolder& folder, std::uint64_t cap_bytes, ColdHooks hooks, const Log& log,
                     ColdCounters& counters)
    : folder_(folder), cap_bytes_(cap_bytes), hooks_(std::move(hooks)), log_(log), counters_(counters) {}

// A disk that is full now and then would fill a log.
void ColdStore::warn(const char* kind, std::string_view what) {
  const auto now = hooks_.now ? hooks_.now() : std::chrono::steady_clock::now();
  const auto last = warned_.find(kind);
  if (last != warned_.end() && now - last->second < kQuiet) return;
  warned_[kind] = now;
  log_.warning("prompt cache on disk: {}; going on without, and silent about more of this kind for {} minutes", what,
               kQuiet.count());
}

// What the cap leaves for records.
std::uint64_t ColdStore::room() const { return cap_bytes_ - std::min(cap_bytes_, folder_.bytes_beside_records()); }

template <typename Work>
bool ColdStore::guarded(Work work) {
  bool was_damaged = false;
  for (int deletions = 0;;) {
    try {
      if (!index_ || !index_->is_still_named()) open_index();
      work();
      count();
      return true;
    } catch (const Error& e) {
      if (index_ && !index_->is_still_named() && ++deletions <= kMaxDeletions) continue;
      if (e.code() == ErrorCode::corrupt_file && !was_damaged) {
        log_.warning("prompt cache on disk: {}; the index is made again", e.what());
        was_damaged = true;
        erase_damaged_index();
        continue;
      }
      warn("failure", e.what());
    } catch (const std::exception& e) {
      warn("failure", e.what());
    }
    return false;
  }
}

void ColdStore::open_index() {
  if (index_) ++counters_.losses;  // deleted beneath us, and records with it
  index_.reset();
  folder_.make_root();
  index_.emplace(folder_.index());
  reconcile();
}

// Another process may have found the same damage, made the index again and written to it: under the lock only what is
// damaged at a second look is erased. An index that is open here is that if it still has its name.
void ColdStore::erase_damaged_index() {
  const ColdDescriptor lock = folder_.lock();
  if (index_ ? index_->is_still_named() : ColdIndex::is_damaged(folder_.index())) ColdIndex::erase(folder_.index());
  index_.reset();
  ++counters_.losses;
}

void ColdStore::start() {
  guarded([] {});
}

// The row of a file that the index does not know, with the time of its last use; nothing when it is not a
// good record of ours under its own name.
std::optional<std::pair<std::int64_t, ColdRow>> ColdStore::adopt(const ColdKey& key) {
  const std::filesystem::path path = folder_.record(key);
  std::optional<ColdFile> file;
  try {
    file = ColdFile::open(path);
    if (!file) return std::nullopt;
    const ColdHeader& header = file->load();
    if (header.key != key) return std::nullopt;
    const ColdRow row{
        .key = key, .parent = header.parent, .signature = hash_of(header.signature), .bytes = file->bytes()};
    return std::pair(file->modified_ns(), row);
  } catch (const Error& e) {
    if (e.code() != ErrorCode::corrupt_file) return std::nullopt;
    log_.warning("{}: {}; the file is removed", path.string(), e.what());
    ++counters_.damaged;
    file->remove_from(path);
    return std::nullopt;
  }
}

std::vector<std::pair<std::int64_t, ColdRow>> ColdStore::strangers(const std::vector<ColdKey>& known,
                                                                   std::vector<ColdKey>& seen) {
  std::vector<std::pair<std::int64_t, ColdRow>> rows;
  folder_.scan(
      [&](const ColdKey& key) {
        if (std::ranges::binary_search(known, key)) {
          seen.push_back(key);
        } else if (auto row = adopt(key)) {
          rows.push_back(std::move(*row));
        }
      },
      reap_temp);
  std::ranges::stable_sort(rows, {}, &std::pair<std::int64_t, ColdRow>::first);
  std::ranges::sort(seen);
  return rows;
}

// Files are read before the change begins, so that other processes wait for its rows only. What they did
// meanwhile is looked at again inside.
void ColdStore::reconcile() {
  std::vector<ColdKey> known = index_->keys(), seen;
  std::ranges::sort(known);
  const auto rows = strangers(known, seen);
  ColdIndex::Change change(*index_);
  for (const auto& [time, row] : rows)
    if (!index_->contains(row.key) && !is_missing(folder_.record(row.key))) index_->put(row);
  for (const ColdKey& key : known)
    if (!std::ranges::binary_search(seen, key) && is_missing(folder_.record(key))) index_->remove(key);
  make_room(nullptr, room());
  change.commit();
}

// Takes the least recently used records out until the rows of the index fit into `most` bytes, those first that no other
// record follows. False, and nothing is removed, when the record `keep` itself would have to go.
bool ColdStore::make_room(const ColdKey* keep, std::uint64_t most) {
  std::vector<ColdKey> leaving;
  for (ColdTotals totals = index_->totals(); totals.bytes > most; totals = index_->totals()) {
    const auto row = index_->oldest_leaf();
    if (!row) break;
    if (keep && row->key == *keep) return false;
    index_->remove(row->key);
    if (index_->totals().entries >= totals.entries)  // or this would never end
      fail(ErrorCode::corrupt_file, "cold", "index: a row that cannot be removed");
    leaving.push_back(row->key);
  }
  for (const ColdKey& key : leaving) remove_ours(folder_.record(key));
  counters_.evicted += leaving.size();
  return true;
}

// Where a file holds some of what `record` does, `record` becomes what both hold.
ColdStore::Found ColdStore::look(ColdRecord& record) const {
  try {
    auto file = ColdFile::open(folder_.record(record.key));
    if (!file) return Found::nothing;
    const ColdHeader& header = file->load();
    if (header.key != record.key || header.signature != record.signature) return Found::nothing;
    if (!record.join) return Found::all;
    std::optional<ColdRecord> both = record.join(record, *file);
    if (!both) return Found::all;
    record = std::move(*both);
    return Found::nothing;
  } catch (const Error& e) {
    return e.code() == ErrorCode::unsupported ? Found::foreign : Found::nothing;  // damaged: written over
  }
}

void ColdStore::put(ColdRecord record) {
  const Found found = look(record);
  const std::uint64_t bytes = record_bytes(record);
  bool is_stored = false, has_room = true;
  if (const std::uint64_t most = room(); bytes > most) {
    warn("size", fmt::format("a record of {} bytes is larger than the {} that the cap of {} leaves for records", bytes,
                             most, cap_bytes_));
  } else if (found == Found::foreign) {
    warn("foreign", fmt::format("{}: a file of something else, or of a newer version, is in the way",
                                folder_.record(record.key).string()));
  } else if (found == Found::all) {
    ++counters_.present;
    return use(record);
  } else {
    is_stored = guarded([&] { has_room = write(record); });
  }
  ++(!is_stored ? counters_.failed : has_room ? counters_.written : counters_.dropped);
}

void ColdStore::clear() {
  guarded([&] {
    ColdIndex::Change change(*index_);
    make_room(nullptr, 0);
    change.commit();
  });
  ++counters_.losses;
}

// The file is there already. Its row may be missing: a writer died between the two.
void ColdStore::use(const ColdRecord& record) {
  guarded([&] {
    ColdIndex::Change change(*index_);
    const auto adopted = index_->contains(record.key) ? std::nullopt : adopt(record.key);
    if (adopted) index_->put(adopted->second);
    if (adopted) make_room(nullptr, room());
    change.commit();
  });
  touch(std::span(&record.key, 1));
}

bool ColdStore::write(const ColdRecord& record) {
  if (record.follows_record && !index_->contains(record.parent)) return false;
  folder_.make_folders(record.key);
  ColdTemp temp(folder_.record(record.key), record, hooks_);
  if (!publish(record, temp)) return false;
  folder_.sync(record.key);
  if (hooks_.after) hooks_.after(ColdStep::folder_synced);
  return true;
}

// Row and name appear together for other processes. Death in between leaves a file without a row, or rows
// without files: start() puts both right. False: nobody could come to the record, or all the room is taken by the records
// that lead to it; nothing has changed then.
bool ColdStore::publish(const ColdRecord& record, ColdTemp& temp) {
  const std::filesystem::path path = folder_.record(record.key);
  ColdIndex::Change change(*index_);
  if (record.follows_record && !index_->contains(record.parent)) return false;
  index_->put({.key = record.key,
               .parent = record.parent,
               .signature = hash_of(record.signature),
               .bytes = record_bytes(record)});
  if (!make_room(&record.key, room())) return false;
  temp.publish();
  try {
    if (hooks_.after) hooks_.after(ColdStep::renamed);
    change.commit();
  } catch (...) {
    ::unlink(path.c_str());  // uncounted, it would escape the cap
    throw;
  }
  if (hooks_.after) hooks_.after(ColdStep::committed);
  return true;
}

void ColdStore::touch(std::span<const ColdKey> keys) {
  guarded([&] {
    ColdIndex::Change change(*index_);
    for (const ColdKey& key : keys) {
      if (!index_->contains(key)) continue;
      index_->touch(key);
      // For an index made again from the files. A failure costs nothing but order.
      ::utimensat(AT_FDCWD, folder_.record(key).c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
    }
    change.commit();
  });
}

void ColdStore::forget(const ColdKey& key) {
  guarded([&] {
    ColdIndex::Change change(*index_);
    if (is_missing(folder_.record(key))) {
      if (index_->contains(key)) ++counters_.losses;
      index_->remove(key);
    }
    change.commit();
  });
}

void ColdStore::count() {
  const ColdTotals totals = index_->totals();
  counters_.entries = totals.entries;
  counters_.bytes = totals.bytes;
}

}  // namespace godwit::cache
