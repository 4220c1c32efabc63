#include "checkpoint/packed_cache.h"

#include <algorithm>
#include <cstring>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/file_hashes.h"
#include "base/sha256.h"

namespace godwit::checkpoint {
namespace {

namespace fs = std::filesystem;

// The file, all of it in the byte order of little-endian machines: these 8 bytes, the length of the header as u64, the
// header {"matrices": [[name, {"format", "rows", "columns", "at"}], ...]}, and the matrices, each at a multiple of 64
// bytes from the file's start.
constexpr std::string_view kMagic = "GODWITPK";
constexpr std::string_view kSuffix = ".packed";
constexpr std::size_t kStart = 16, kAlignment = 64, kMostHeader = std::size_t{64} << 20;
constexpr std::uint64_t kSpare = std::uint64_t{1} << 30;  // of the disk, left to others

bool is_packed_name(std::string_view name) { return name.size() == 64 + kSuffix.size() && name.ends_with(kSuffix); }

std::size_t aligned(std::size_t at) { return (at + kAlignment - 1) / kAlignment * kAlignment; }

Json entry_of(const kernels::PackedShape& shape, std::size_t at) {
  return {{"format", kernels::name_of(shape.format)}, {"rows", shape.rows}, {"columns", shape.columns}, {"at", at}};
}

std::string key_of(FileHashes& hashes, const std::map<fs::path, FileState>& files, const std::string& variant) {
  Json whole = {kernels::kPackedVersion, variant, Json::array()};
  for (const auto& [file, state] : files) whole[2].push_back(hashes.of(file, state));
  return sha256_of(dump_json(whole));
}

std::map<std::string, Json> read_header(const FileMap& file) {
  const auto bytes = file.bytes();
  const auto refuse = [&](std::string_view why) {
    fail(ErrorCode::corrupt_file, "packed_cache", "{}: {}", file.path().string(), why);
  };
  std::uint64_t length = 0;
  if (bytes.size() < kStart || std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0) refuse("is no file of packed matrices");
  std::memcpy(&length, bytes.data() + kMagic.size(), sizeof length);
  if (length > std::min(bytes.size() - kStart, kMostHeader)) refuse("its header does not fit into it");
  const Json header = parse_json({reinterpret_cast<const char*>(bytes.data()) + kStart, length}, file.path().string());
  const auto matrices = header.is_object() ? header.find("matrices") : header.end();
  if (matrices == header.end() || !matrices->is_array()) refuse("its header names no matrices");
  std::map<std::string, Json> known;
  for (const Json& pair : *matrices) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string() || !pair[1].is_object())
      refuse("its header names a matrix wrongly");
    known.emplace(pair[0].get<std::string>(), pair[1]);
  }
  return known;
}

// The files of the folder, the one that was used longest ago first.
std::vector<fs::path> by_last_use(const fs::path& folder) {
  std::vector<std::pair<fs::file_time_type, fs::path>> found;
  std::error_code error;
  for (fs::directory_iterator item(folder, error), end; !error && item != end; item.increment(error))
    if (is_packed_name(item->path().filename().string())) found.emplace_back(item->last_write_time(error), item->path());
  std::ranges::sort(found);
  std::vector<fs::path> paths;
  for (auto& [time, path] : found) paths.push_back(std::move(path));
  return paths;
}

std::uint64_t size_of_file(const fs::path& path) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  return error ? 0 : size;
}

// Removes files until `wanted` more bytes fit below `most` and on the disk. False where they do not.
bool make_room(const fs::path& folder, const fs::path& own, std::uint64_t wanted, std::uint64_t most) {
  std::uint64_t held = 0;
  std::vector<fs::path> files = by_last_use(folder);
  std::erase(files, own);  // is replaced anyway
  for (const fs::path& file : files) held += size_of_file(file);
  const auto fits = [&] {
    std::error_code error;
    const fs::space_info disk = fs::space(folder, error);
    return wanted <= most && held <= most - wanted && (error || disk.available >= wanted + kSpare);
  };
  for (auto file = files.begin(); !fits() && wanted <= most && file != files.end(); ++file) {
    std::error_code error;
    const std::uint64_t size = size_of_file(*file);
    if (fs::remove(*file, error)) held -= size;
  }
  return fits();
}

}  // namespace

PackedCache::PackedCache(const fs::path& folder, const std::map<fs::path, FileState>& files,
                         std::string variant, Log log)
    : folder_(folder), files_(files), variant_(std::move(variant)), log_(std::move(log)) {}

const fs::path& PackedCache::file() {
  if (path_.empty()) open();
  return path_;
}

void PackedCache::open() {
  FileHashes hashes(folder_, log_);  // makes the folder
  reap_unfinished(folder_, is_packed_name);
  path_ = folder_ / (key_of(hashes, files_, variant_) + std::string(kSuffix));
  hashes.save();
  if (std::error_code error; !fs::exists(path_, error)) return;
  try {
    auto map = std::make_shared<const FileMap>(path_);
    known_ = read_header(*map);
    map_ = std::move(map);
    std::error_code error;
    fs::last_write_time(path_, fs::file_time_type::clock::now(), error);
  } catch (const Error& error) {
    log_.warning("{}; weights are packed again", error.what());
  }
}

std::shared_ptr<const ops::PackedMatrix> PackedCache::find(const std::string& name, const kernels::PackedShape& shape) {
  if (path_.empty()) open();
  const auto entry = known_.find(name);
  if (!map_ || entry == known_.end()) return nullptr;
  const auto at = entry->second.find("at");
  if (at == entry->second.end() || !at->is_number_unsigned()) return nullptr;
  if (entry->second != entry_of(shape, at->get<std::size_t>())) return nullptr;
  try {
    auto matrix = std::make_shared<const ops::PackedMatrix>(shape, map_, at->get<std::size_t>());
    matrices_[name] = matrix;
    return matrix;
  } catch (const Error& error) {
    log_.warning("{}; {} is packed again", error.what(), name);
    return nullptr;
  }
}

void PackedCache::add(const std::string& name, std::shared_ptr<const ops::PackedMatrix> matrix) {
  if (path_.empty()) open();
  matrices_[name] = std::move(matrix);
  is_changed_ = true;
}

void PackedCache::save(std::uint64_t most_bytes) {
  if (!is_changed_) return;
  try {
    std::uint64_t wanted = kMostHeader;
    for (const auto& [name, matrix] : matrices_) wanted += matrix->bytes().size() + kAlignment;
    if (!make_room(folder_, path_, wanted, most_bytes)) {
      log_.warning("{}: no room for {:.0f} MB of packed weights; they are packed at each start", folder_.string(),
                   static_cast<double>(wanted) / 1e6);
      return;
    }
    write();
    log_.info("packed weights: written to {}", path_.string());
  } catch (const Error& error) {
    log_.warning("{}; weights are packed at each start", error.what());
  }
}

void PackedCache::write() {
  Json entries = Json::array();
  std::size_t size = 0;  // of the matrices; where they start is known once the header is
  for (const auto& [name, matrix] : matrices_) {
    entries.push_back({name, entry_of(matrix->shape(), size)});
    size += aligned(matrix->bytes().size());
  }
  // Positions grow by the header's own length, which grows by their digits: room for those is left ahead.
  const std::size_t start = aligned(kStart + dump_json({{"matrices", entries}}).size() + 20 * matrices_.size());
  for (Json& pair : entries) pair[1]["at"] = pair[1]["at"].get<std::size_t>() + start;
  std::string head = dump_json({{"matrices", entries}});
  head.resize(start - kStart, ' ');
  const std::uint64_t length = head.size();
  AtomicFile file(path_);
  file.write(kMagic);
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(head);
  const std::string padding(kAlignment, '\0');
  for (const auto& [name, matrix] : matrices_) {
    file.write(matrix->bytes());
    file.write(std::string_view(padding).substr(0, aligned(matrix->bytes().size()) - matrix->bytes().size()));
  }
  file.commit();
}

}  // namespace godwit::checkpoint
