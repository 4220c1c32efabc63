#include "cache/cold_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>

namespace godwit::cache {
namespace {

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

void ColdStore::warn(const char* kind, std::string_view what) {
  if (warned_.insert(kind).second)
    log_.warning("prompt cache on disk: {}; going on without, and more of this kind is not reported", what);
}

template <typename Work>
bool ColdStore::guarded(Work work) {
  for (const bool is_last : {false, true}) {
    try {
      if (!index_ || !index_->is_still_named()) open_index();
      work();
      count();
      return true;
    } catch (const Error& e) {
      if (e.code() == ErrorCode::corrupt_file && !is_last) {
        log_.warning("prompt cache on disk: {}; the index is made again", e.what());
        index_.reset();
        ColdIndex::erase(folder_.index());
        continue;
      }
      warn("failure", e.what());
    } catch (const std::exception& e) {
      warn("failure", e.what());
    }
    return false;
  }
  return false;
}

void ColdStore::open_index() {
  index_.reset();
  folder_.make_root();
  index_.emplace(folder_.index());
  reconcile();
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
  evict(0);
  change.commit();
}

void ColdStore::evict(std::uint64_t room) {
  while (index_->totals().bytes > cap_bytes_ - room) {
    const auto row = index_->oldest();
    if (!row) return;
    const std::uint64_t entries = index_->totals().entries;
    index_->remove(row->key);
    if (index_->totals().entries >= entries)  // or this would never end
      fail(ErrorCode::corrupt_file, "cold", "index: a row that cannot be removed");
    remove_ours(folder_.record(row->key));
    ++counters_.evicted;
  }
}

ColdStore::Found ColdStore::look(const ColdRecord& record) const {
  try {
    auto file = ColdFile::open(folder_.record(record.key));
    if (!file) return Found::nothing;
    const ColdHeader& header = file->load();
    return header.key == record.key && header.signature == record.signature ? Found::equal : Found::nothing;
  } catch (const Error& e) {
    return e.code() == ErrorCode::unsupported ? Found::foreign : Found::nothing;  // damaged: written over
  }
}

void ColdStore::put(const ColdRecord& record) {
  const std::uint64_t bytes = record_bytes(record);
  const Found found = look(record);
  bool is_stored = false;
  if (bytes > cap_bytes_) {
    warn("size", fmt::format("a record of {} bytes is larger than the cap of {}", bytes, cap_bytes_));
  } else if (found == Found::foreign) {
    warn("foreign", fmt::format("{}: a file of something else, or of a newer version, is in the way",
                                folder_.record(record.key).string()));
  } else if (found == Found::equal) {
    ++counters_.present;
    return touch(std::span(&record.key, 1));
  } else {
    is_stored = guarded([&] { write(record); });
    if (is_stored) warned_.clear();
  }
  ++(is_stored ? counters_.written : counters_.failed);
}

void ColdStore::write(const ColdRecord& record) {
  folder_.make_folders(record.key);
  ColdTemp temp(folder_.record(record.key), record, hooks_);
  publish(record, temp);
  folder_.sync(record.key);
  if (hooks_.after) hooks_.after(ColdStep::folder_synced);
}

// Row and name appear together for other processes. Death in between leaves a file without a row, or rows
// without files: start() puts both right.
void ColdStore::publish(const ColdRecord& record, ColdTemp& temp) {
  const std::filesystem::path path = folder_.record(record.key);
  ColdIndex::Change change(*index_);
  index_->remove(record.key);
  evict(record_bytes(record));
  index_->put({.key = record.key,
               .parent = record.parent,
               .signature = hash_of(record.signature),
               .bytes = record_bytes(record)});
  temp.publish();
  try {
    if (hooks_.after) hooks_.after(ColdStep::renamed);
    change.commit();
  } catch (...) {
    ::unlink(path.c_str());  // uncounted, it would escape the cap
    throw;
  }
  if (hooks_.after) hooks_.after(ColdStep::committed);
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
    if (is_missing(folder_.record(key))) index_->remove(key);
    change.commit();
  });
}

void ColdStore::count() {
  const ColdTotals totals = index_->totals();
  counters_.entries = totals.entries;
  counters_.bytes = totals.bytes;
}

}  // namespace godwit::cache
