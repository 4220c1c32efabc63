#include "cache/cold_index.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace godwit::cache {
namespace {

constexpr int kBusyMs = 5000;
constexpr int kMaxTries = 8;  // to open a file that somebody deletes at the same time
constexpr std::int64_t kApplication = 0x47574b56;  // "GWKV", in the header of the SQLite file

// `used` counts uses instead of telling the time: clocks jump. The totals are kept by triggers, in the same
// transaction as the rows, so that asking for them costs nothing.
constexpr const char* kSchema = R"(
CREATE TABLE entries(key BLOB PRIMARY KEY, signature BLOB NOT NULL, parent BLOB NOT NULL, bytes INTEGER NOT NULL,
                     used INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX entries_by_use ON entries(used);
CREATE INDEX entries_by_parent ON entries(parent);
CREATE TABLE totals(entries INTEGER NOT NULL, bytes INTEGER NOT NULL);
INSERT INTO totals VALUES(0, 0);
CREATE TRIGGER entry_added AFTER INSERT ON entries
  BEGIN UPDATE totals SET entries = entries + 1, bytes = bytes + NEW.bytes; END;
CREATE TRIGGER entry_removed AFTER DELETE ON entries
  BEGIN UPDATE totals SET entries = entries - 1, bytes = bytes - OLD.bytes; END;
PRAGMA application_id = 1196903254;
)";

[[noreturn]] void sql_failure(sqlite3* db, int code) {
  const int kind = code & 0xff;
  const bool is_damaged = kind == SQLITE_CORRUPT || kind == SQLITE_NOTADB || kind == SQLITE_ERROR ||
                          kind == SQLITE_CONSTRAINT || kind == SQLITE_MISMATCH || kind == SQLITE_SCHEMA;
  fail(is_damaged ? ErrorCode::corrupt_file : ErrorCode::io, "cold", "index: {}",
       db ? sqlite3_errmsg(db) : sqlite3_errstr(code));
}

class Statement {
 public:
  Statement(sqlite3* db, const char* sql) : db_(db) {
    if (const int code = sqlite3_prepare_v2(db, sql, -1, &statement_, nullptr); code != SQLITE_OK)
      sql_failure(db, code);
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(std::span<const std::byte> bytes) {
    check(sqlite3_bind_blob(statement_, ++bound_, bytes.data(), static_cast<int>(bytes.size()),
                            SQLITE_TRANSIENT));
    return *this;
  }
  Statement& bind(std::uint64_t value) {
    check(sqlite3_bind_int64(statement_, ++bound_, static_cast<sqlite3_int64>(value)));
    return *this;
  }
  // True while there is a row.
  bool step() {
    const int code = sqlite3_step(statement_);
    if (code != SQLITE_ROW && code != SQLITE_DONE) sql_failure(db_, code);
    return code == SQLITE_ROW;
  }
  template <std::size_t N>
  void read(int column, std::array<std::byte, N>& into) {
    const void* const bytes = sqlite3_column_blob(statement_, column);
    if (!bytes || sqlite3_column_bytes(statement_, column) != N)
      fail(ErrorCode::corrupt_file, "cold", "index: a field of a wrong size");
    std::memcpy(into.data(), bytes, N);
  }
  std::int64_t integer(int column) { return sqlite3_column_int64(statement_, column); }

 private:
  void check(int code) {
    if (code != SQLITE_OK) sql_failure(db_, code);
  }
  sqlite3* db_;
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0;
};

std::uint64_t size_of(Statement& statement, int column) {
  const std::int64_t value = statement.integer(column);
  if (value < 0) fail(ErrorCode::corrupt_file, "cold", "index: a size of {}", value);
  return static_cast<std::uint64_t>(value);
}

// SQLite would make it readable for others; its journal gets the mode of this file. One that is there is not opened:
// to close a descriptor ends the locks that another index of this process holds on the file.
void make_private(const std::filesystem::path& file) {
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor >= 0) ::close(descriptor);
  if (descriptor < 0 && errno != EEXIST)
    fail(ErrorCode::io, "cold", "{}: cannot make it: {}", file.string(), std::strerror(errno));
}

// Whether the header of the file asks for a write-ahead log, read before SQLite acts on it.
bool wants_log(sqlite3* db) {
  constexpr int kFormats = 18;  // of writing and of reading; 1: a journal, 2: a log
  sqlite3_file* file = nullptr;
  if (const int code = sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file); code != SQLITE_OK)
    sql_failure(db, code);
  std::array<unsigned char, 2> formats{};
  const int code = file->pMethods->xRead(file, formats.data(), static_cast<int>(formats.size()), kFormats);
  return code == SQLITE_OK && (formats[0] == 2 || formats[1] == 2);
}

constexpr const char* kLeaf =
    "SELECT key, signature, parent, bytes FROM entries AS row "
    "WHERE NOT EXISTS (SELECT 1 FROM entries AS child WHERE child.parent = row.key) ORDER BY used LIMIT 1";
constexpr const char* kAny = "SELECT key, signature, parent, bytes FROM entries ORDER BY used LIMIT 1";

}  // namespace

void ColdIndex::Closer::operator()(sqlite3* db) const { sqlite3_close_v2(db); }

ColdIndex::ColdIndex(const std::filesystem::path& file) : file_(file) {
  int tries = 1;
  while (!open_file())
    if (++tries > kMaxTries) fail(ErrorCode::io, "cold", "{}: vanishes again and again", file.string());
  if (wants_log(db_.get())) fail(ErrorCode::corrupt_file, "cold", "index: has a write-ahead log");
  sqlite3_busy_timeout(db_.get(), kBusyMs);
  set_up();
}

bool ColdIndex::open_file() {
  make_private(file_);
  struct stat info {};
  if (::lstat(file_.c_str(), &info) != 0) {
    if (errno == ENOENT) return false;
    fail(ErrorCode::io, "cold", "{}: cannot open: {}", file_.string(), std::strerror(errno));
  }
  if (!S_ISREG(info.st_mode)) fail(ErrorCode::io, "cold", "{}: is not a regular file", file_.string());
  device_ = static_cast<std::uint64_t>(info.st_dev);
  inode_ = static_cast<std::uint64_t>(info.st_ino);
  sqlite3* db = nullptr;
  const int code = sqlite3_open_v2(file_.c_str(), &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_FULLMUTEX, nullptr);
  db_.reset(db);
  if (code == SQLITE_OK) return true;
  if (!is_still_named()) return false;
  sql_failure(db, code);
}

void ColdIndex::set_up() {
  run("PRAGMA mmap_size = 0");
  run("PRAGMA journal_mode = TRUNCATE");
  // A power cut may take the last changes and, on some file systems, the sense of the index: then it is made again.
  run("PRAGMA synchronous = NORMAL");
  Change change(*this);
  Statement tables(db_.get(), "SELECT count(*) FROM sqlite_master");
  tables.step();
  Statement application(db_.get(), "PRAGMA application_id");
  application.step();
  if (tables.integer(0) == 0 && application.integer(0) == 0) {
    run(kSchema);
  } else {
    if (application.integer(0) != kApplication)
      fail(ErrorCode::corrupt_file, "cold", "index: another program's");
    Statement check(db_.get(), "PRAGMA quick_check(1)");
    std::array<std::byte, 2> ok{};
    check.step();
    check.read(0, ok);
    Statement sums(db_.get(), "SELECT count(*), coalesce(sum(bytes), 0) FROM entries");
    sums.step();
    const ColdTotals kept = totals();
    if (kept.entries != size_of(sums, 0) || kept.bytes != size_of(sums, 1))
      fail(ErrorCode::corrupt_file, "cold", "index: the totals are wrong");
  }
  change.commit();
}

void ColdIndex::run(const char* sql) {
  if (const int code = sqlite3_exec(db_.get(), sql, nullptr, nullptr, nullptr); code != SQLITE_OK)
    sql_failure(db_.get(), code);
}

ColdIndex::Change::Change(ColdIndex& index) : index_(index) { index_.run("BEGIN IMMEDIATE"); }

ColdIndex::Change::~Change() {
  if (is_open_) sqlite3_exec(index_.db_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void ColdIndex::Change::commit() {
  index_.run("COMMIT");
  is_open_ = false;
}

void ColdIndex::put(const ColdRow& row) {
  remove(row.key);
  Statement(db_.get(), "INSERT INTO entries SELECT ?, ?, ?, ?, coalesce(max(used), 0) + 1 FROM entries")
      .bind(row.key.bytes)
      .bind(row.signature)
      .bind(row.parent.bytes)
      .bind(row.bytes)
      .step();
}

void ColdIndex::remove(const ColdKey& key) {
  Statement(db_.get(), "DELETE FROM entries WHERE key = ?").bind(key.bytes).step();
}

void ColdIndex::touch(const ColdKey& key) {
  Statement(db_.get(), "UPDATE entries SET used = (SELECT max(used) + 1 FROM entries) WHERE key = ?")
      .bind(key.bytes)
      .step();
}

bool ColdIndex::contains(const ColdKey& key) {
  return Statement(db_.get(), "SELECT 1 FROM entries WHERE key = ?").bind(key.bytes).step();
}

std::optional<ColdRow> ColdIndex::oldest_leaf() {
  for (const char* sql : {kLeaf, kAny}) {
    Statement query(db_.get(), sql);
    if (!query.step()) continue;
    ColdRow row;
    query.read(0, row.key.bytes);
    query.read(1, row.signature);
    query.read(2, row.parent.bytes);
    row.bytes = size_of(query, 3);
    return row;
  }
  return std::nullopt;
}

ColdTotals ColdIndex::totals() {
  Statement query(db_.get(), "SELECT entries, bytes FROM totals");
  if (!query.step()) fail(ErrorCode::corrupt_file, "cold", "index: the totals are missing");
  return {.entries = size_of(query, 0), .bytes = size_of(query, 1)};
}

std::vector<ColdKey> ColdIndex::keys() {
  std::vector<ColdKey> keys;
  Statement query(db_.get(), "SELECT key FROM entries");
  while (query.step()) query.read(0, keys.emplace_back().bytes);
  return keys;
}

bool ColdIndex::is_still_named() const {
  struct stat info {};
  return ::stat(file_.c_str(), &info) == 0 && static_cast<std::uint64_t>(info.st_dev) == device_ &&
         static_cast<std::uint64_t>(info.st_ino) == inode_;
}

bool ColdIndex::is_damaged(const std::filesystem::path& file) {
  try {
    ColdIndex index(file);
    return false;
  } catch (const Error& e) {
    return e.code() == ErrorCode::corrupt_file;
  }
}

void ColdIndex::erase(const std::filesystem::path& file) {
  for (const char* companion : {"", "-journal", "-wal", "-shm"}) ::unlink((file.string() + companion).c_str());
}

}  // namespace godwit::cache
