// A record of the cold tier and the bytes in front of its parts (docs/prompt-cache.md, "Files on disk").
// Nothing here opens a file, and nothing knows what the parts hold.
//
//   0    magic (8), version u32, header_bytes u32, file_bytes u64, zero (8)
//   32   XXH3-128 over [0, data_start) with these 16 bytes as zeros; zero (16)
//   64   key (32), parent (32), sizes u32 of: signature, tokens, metadata, parts; then signature, tokens i32,
//        metadata, and for each part offset u64, bytes u64, XXH3-128 over its bytes and their padding
//   ...  zeros up to data_start; each part starts at a multiple of 4096 and is padded with zeros to one
//
// Integers are little-endian. No byte of a file is outside of a hash or of what is compared, so any change
// shows.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace godwit::cache {

inline constexpr std::size_t kColdAlign = 4096;
inline constexpr std::size_t kColdPrefix = 64;
inline constexpr std::uint32_t kColdVersion = 1;
// What a record may hold. They bound what a header can make a reader allocate.
inline constexpr std::size_t kColdMaxTokens = 64;
inline constexpr std::size_t kColdMaxText = 64 << 10;  // signature; metadata
inline constexpr std::size_t kColdMaxParts = 4096;

// SHA-256 chained by the caller over everything in front of and in the record.
struct ColdKey {
  std::array<std::byte, 32> bytes{};
  auto operator<=>(const ColdKey&) const = default;
  std::string hex() const;  // 64 lower-case digits
  static std::optional<ColdKey> from_hex(std::string_view hex);
};

struct ColdPart {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;  // keeps `bytes` alive and unchanged until the record is written
};

class ColdFile;

struct ColdRecord {
  // What to store where `stored`, a checked file of the same key and signature, lies already: nothing if it holds all
  // of `record`, else a record that holds what both do. May throw Error when a part of the file cannot be read.
  using Join = std::optional<ColdRecord> (*)(const ColdRecord& record, const ColdFile& stored);

  ColdKey key, parent;
  std::string signature;  // everything that can change a cached byte, in one canonical form
  std::vector<int> tokens;
  std::string metadata;  // the caller's, opaque
  std::vector<ColdPart> parts;
  bool follows_record = false;  // `parent` names a record, without which nobody comes to this one
  Join join = nullptr;          // null: records of one key hold the same
};

using ColdHash = std::array<std::byte, 16>;

struct ColdPartPlace {
  std::uint64_t offset = 0, bytes = 0;
  ColdHash hash{};
};

struct ColdHeader {
  ColdKey key, parent;
  std::string signature;
  std::vector<int> tokens;
  std::string metadata;
  std::vector<ColdPartPlace> parts;
};

// XXH3-128 of a stream, in the canonical (big-endian) form. It finds damage, not malice.
class ColdHasher {
 public:
  ColdHasher();
  ~ColdHasher();
  void update(std::span<const std::byte> bytes);
  ColdHash digest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Throws Error{invalid_argument} when a record is past the limits above.
void check_record(const ColdRecord& record);

// The size of the file that a record becomes.
std::uint64_t record_bytes(const ColdRecord& record);

// bytes + padding up to the next multiple of kColdAlign.
std::uint64_t padded(std::uint64_t bytes);

// Bytes [0, data_start) of the file; reads every byte of the parts for their hashes.
std::vector<std::byte> encode_front(const ColdRecord& record);

// Writes the hash of `front`, which is [0, data_start), into it.
void seal_front(std::span<std::byte> front);

// Whether a file that starts with these bytes is one of ours, possibly cut short, and of a version known
// here.
bool is_cold_start(std::span<const std::byte> start);

// data_start of the file that has this prefix of kColdPrefix bytes. Throws Error{unsupported} for what is not
// ours (another magic, a newer version) and Error{corrupt_file} for sizes that do not fit a file of
// `file_bytes`.
std::size_t front_bytes(std::span<const std::byte> prefix, std::uint64_t file_bytes);

// Checks hash, sizes and the place of each part. Errors as front_bytes().
ColdHeader parse_front(std::span<const std::byte> front, std::uint64_t file_bytes);

}  // namespace godwit::cache
