// Which records a folder holds and when each was used last, in SQLite, so that processes sharing the folder
// agree on the size cap. It is a by-product of the files: a lost or damaged one is made again from their
// headers, and no answer depends on it. One thread at a time.
//
// Changes go through a rollback journal. The other way of SQLite, a write-ahead log, maps a file that all processes
// share, and a process that looks at a mapped page dies when somebody has cut that file short.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cache/cold_record.h"

struct sqlite3;

namespace godwit::cache {

struct ColdRow {
  ColdKey key, parent;
  ColdHash signature{};  // hash of the signature string
  std::uint64_t bytes = 0;
};

struct ColdTotals {
  std::uint64_t entries = 0, bytes = 0;
};

class ColdIndex {
 public:
  // Opens or creates, mode 0600. All functions throw Error{corrupt_file} when the file is no index of ours or
  // contradicts itself, and Error{io} for the rest (busy for too long, disk full, read-only).
  explicit ColdIndex(const std::filesystem::path& file);

  // All changes belong in one: they happen at commit() or not at all. Other processes wait meanwhile.
  class Change {
   public:
    explicit Change(ColdIndex& index);
    ~Change();  // rolls back what was not committed
    Change(const Change&) = delete;
    Change& operator=(const Change&) = delete;
    void commit();

   private:
    ColdIndex& index_;
    bool is_open_ = true;
  };

  void put(const ColdRow& row);  // newest of all; replaces a row of this key
  void remove(const ColdKey& key);
  void touch(const ColdKey& key);  // now the newest; nothing happens without a row
  bool contains(const ColdKey& key);
  // The least recently used of the rows that are nobody's parent: without its parent a row cannot be reached. Damage may
  // leave no such row; then of all.
  std::optional<ColdRow> oldest_leaf();
  ColdTotals totals();
  std::vector<ColdKey> keys();

  // False once the file was deleted or replaced: what is written here, nobody will read.
  bool is_still_named() const;
  // Whether opening it finds damage (Error{corrupt_file}).
  static bool is_damaged(const std::filesystem::path& file);
  // Deletes the index with its companions.
  static void erase(const std::filesystem::path& file);

 private:
  struct Closer {
    void operator()(sqlite3* db) const;
  };
  void run(const char* sql);
  bool open_file();  // false when somebody deleted it meanwhile
  void set_up();

  std::filesystem::path file_;
  std::uint64_t device_ = 0, inode_ = 0;
  std::unique_ptr<sqlite3, Closer> db_;
};

}  // namespace godwit::cache
