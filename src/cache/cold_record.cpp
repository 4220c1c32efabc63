#include "cache/cold_record.h"

#include <xxhash.h>

#include <algorithm>
#include <limits>

#include "base/checked.h"
#include "base/error.h"

namespace godwit::cache {
namespace {

constexpr std::string_view kMagic = "GODWITKV";
constexpr std::size_t kVersionAt = 8, kHeaderBytesAt = 12, kFileBytesAt = 16, kHashAt = 32;
constexpr std::size_t kFixed = 32 + 32 + 4 * 4, kPlace = 8 + 8 + 16;
constexpr std::size_t kMaxHeader = kFixed + 2 * kColdMaxText + 4 * kColdMaxTokens + kPlace * kColdMaxParts;

// Appends little-endian fields.
class Out {
 public:
  template <typename T>
  void integer(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i)
      bytes.push_back(static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i)));
  }
  void raw(std::span<const std::byte> from) { bytes.insert(bytes.end(), from.begin(), from.end()); }
  void text(std::string_view from) { raw(std::as_bytes(std::span(from))); }

  std::vector<std::byte> bytes;
};

// Reads them back; never past the end.
class In {
 public:
  explicit In(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> raw(std::size_t count) {
    if (count > bytes_.size()) fail(ErrorCode::corrupt_file, "cold", "the header ends inside a field");
    const auto taken = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return taken;
  }
  template <typename T>
  T integer() {
    std::uint64_t value = 0;
    const auto from = raw(sizeof(T));
    for (std::size_t i = 0; i < sizeof(T); ++i) value |= static_cast<std::uint64_t>(from[i]) << (8 * i);
    return static_cast<T>(value);
  }
  template <std::size_t N>
  void fill(std::array<std::byte, N>& into) {
    std::ranges::copy(raw(N), into.begin());
  }
  std::string text(std::size_t count) {
    const auto from = raw(count);
    return {reinterpret_cast<const char*>(from.data()), from.size()};
  }
  std::size_t size() const { return bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
};

constexpr std::array<std::byte, kColdAlign> kZeros{};

std::span<const std::byte> padding_of(std::uint64_t bytes) {
  return std::span(kZeros).first(static_cast<std::size_t>(padded(bytes) - bytes));
}

std::size_t header_bytes(const ColdRecord& record) {
  return kFixed + record.signature.size() + 4 * record.tokens.size() + record.metadata.size() +
         kPlace * record.parts.size();
}

ColdHash front_hash(std::span<const std::byte> front) {
  ColdHasher hash;
  hash.update(front.first(kHashAt));
  hash.update(std::span(kZeros).first(sizeof(ColdHash)));
  hash.update(front.subspan(kHashAt + sizeof(ColdHash)));
  return hash.digest();
}

std::uint32_t limited(In& in, std::size_t limit, std::string_view what) {
  const auto count = in.integer<std::uint32_t>();
  if (count > limit)
    fail(ErrorCode::corrupt_file, "cold", "{}: {}, at most {} are allowed", what, count, limit);
  return count;
}

// Parts follow one another without a gap, from the end of the front to the end of the file.
void check_places(const std::vector<ColdPartPlace>& parts, std::uint64_t start, std::uint64_t file_bytes) {
  for (const ColdPartPlace& part : parts) {
    if (part.offset != start)
      fail(ErrorCode::corrupt_file, "cold", "a part at {} instead of {}", part.offset, start);
    const auto room = checked_add(part.bytes, kColdAlign - 1, "bytes of a part") / kColdAlign * kColdAlign;
    start = checked_add(start, room, "end of a part");
    if (start > file_bytes)
      fail(ErrorCode::corrupt_file, "cold", "a part ends at {}, the file at {}", start, file_bytes);
  }
  if (start != file_bytes)
    fail(ErrorCode::corrupt_file, "cold", "the parts end at {}, the file at {}", start, file_bytes);
}

}  // namespace

std::string ColdKey::hex() const {
  std::string hex;
  for (const std::byte byte : bytes) hex += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return hex;
}

std::optional<ColdKey> ColdKey::from_hex(std::string_view hex) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  ColdKey key;
  if (hex.size() != 2 * key.bytes.size()) return std::nullopt;
  for (std::size_t i = 0; i < hex.size(); ++i) {
    const std::size_t digit = kDigits.find(hex[i]);
    if (digit == std::string_view::npos) return std::nullopt;
    key.bytes[i / 2] = key.bytes[i / 2] << 4 | static_cast<std::byte>(digit);
  }
  return key;
}

struct ColdHasher::State {
  XXH3_state_t* xxh = XXH3_createState();
  ~State() { XXH3_freeState(xxh); }
};

ColdHasher::ColdHasher() : state_(std::make_unique<State>()) {
  GODWIT_CHECK(state_->xxh && XXH3_128bits_reset(state_->xxh) == XXH_OK);
}
ColdHasher::~ColdHasher() = default;

void ColdHasher::update(std::span<const std::byte> bytes) {
  if (!bytes.empty()) XXH3_128bits_update(state_->xxh, bytes.data(), bytes.size());
}

ColdHash ColdHasher::digest() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state_->xxh));
  ColdHash hash;
  std::ranges::copy(std::as_bytes(std::span(canonical.digest)), hash.begin());
  return hash;
}

void check_record(const ColdRecord& record) {
  const auto refuse = [](std::string_view what, std::size_t count, std::size_t limit) {
    if (count > limit)
      fail(ErrorCode::invalid_argument, "cold", "{} of a record: {}, at most {} are allowed", what, count,
           limit);
  };
  refuse("tokens", record.tokens.size(), kColdMaxTokens);
  refuse("signature bytes", record.signature.size(), kColdMaxText);
  refuse("metadata bytes", record.metadata.size(), kColdMaxText);
  refuse("parts", record.parts.size(), kColdMaxParts);
}

std::uint64_t padded(std::uint64_t bytes) { return (bytes + kColdAlign - 1) / kColdAlign * kColdAlign; }

std::uint64_t record_bytes(const ColdRecord& record) {
  std::uint64_t bytes = padded(kColdPrefix + header_bytes(record));
  for (const ColdPart& part : record.parts) bytes += padded(part.bytes.size());
  return bytes;
}

std::vector<std::byte> encode_front(const ColdRecord& record) {
  Out out;
  out.text(kMagic);
  out.integer(kColdVersion);
  out.integer(static_cast<std::uint32_t>(header_bytes(record)));
  out.integer(record_bytes(record));
  out.bytes.resize(kColdPrefix);
  out.raw(record.key.bytes);
  out.raw(record.parent.bytes);
  for (const std::size_t count :
       {record.signature.size(), record.tokens.size(), record.metadata.size(), record.parts.size()})
    out.integer(static_cast<std::uint32_t>(count));
  out.text(record.signature);
  for (const int token : record.tokens) out.integer(static_cast<std::uint32_t>(token));
  out.text(record.metadata);
  std::uint64_t offset = padded(kColdPrefix + header_bytes(record));
  for (const ColdPart& part : record.parts) {
    ColdHasher hash;
    hash.update(part.bytes);
    hash.update(padding_of(part.bytes.size()));
    out.integer(offset);
    out.integer(static_cast<std::uint64_t>(part.bytes.size()));
    out.raw(hash.digest());
    offset += padded(part.bytes.size());
  }
  out.bytes.resize(padded(out.bytes.size()));
  seal_front(out.bytes);
  return std::move(out.bytes);
}

void seal_front(std::span<std::byte> front) {
  std::ranges::copy(front_hash(front), front.begin() + static_cast<std::ptrdiff_t>(kHashAt));
}

bool is_cold_start(std::span<const std::byte> start) {
  const auto magic = std::as_bytes(std::span(kMagic));
  const std::size_t common = std::min(magic.size(), start.size());
  if (!std::ranges::equal(start.first(common), magic.first(common))) return false;
  if (start.size() < kVersionAt + 4) return true;
  return In(start.subspan(kVersionAt)).integer<std::uint32_t>() <= kColdVersion;
}

std::size_t front_bytes(std::span<const std::byte> prefix, std::uint64_t file_bytes) {
  if (!is_cold_start(prefix))
    fail(ErrorCode::unsupported, "cold", "is no cache record, or one of a newer version");
  if (prefix.size() < kColdPrefix || file_bytes < kColdPrefix)
    fail(ErrorCode::corrupt_file, "cold", "only {} bytes long", prefix.size());
  if (In(prefix.subspan(kVersionAt)).integer<std::uint32_t>() != kColdVersion)
    fail(ErrorCode::corrupt_file, "cold", "a version that never was");
  const std::size_t header = In(prefix.subspan(kHeaderBytesAt)).integer<std::uint32_t>();
  const std::uint64_t announced = In(prefix.subspan(kFileBytesAt)).integer<std::uint64_t>();
  if (announced != file_bytes)
    fail(ErrorCode::corrupt_file, "cold", "{} bytes long, {} by its header", file_bytes, announced);
  if (header < kFixed || header > kMaxHeader)
    fail(ErrorCode::corrupt_file, "cold", "a header of {} bytes", header);
  const std::uint64_t front = padded(kColdPrefix + header);
  if (front > file_bytes)
    fail(ErrorCode::corrupt_file, "cold", "a header of {} bytes in a file of {}", header, file_bytes);
  return static_cast<std::size_t>(front);
}

ColdHeader parse_front(std::span<const std::byte> front, std::uint64_t file_bytes) {
  if (front_bytes(front.first(std::min(front.size(), kColdPrefix)), file_bytes) != front.size())
    fail(ErrorCode::corrupt_file, "cold", "a header of another size");
  const ColdHash hash = front_hash(front);
  if (!std::ranges::equal(hash, front.subspan(kHashAt, hash.size())))
    fail(ErrorCode::corrupt_file, "cold", "the header does not match its hash");
  const auto used = In(front.subspan(kHeaderBytesAt)).integer<std::uint32_t>();
  In in(front.subspan(kColdPrefix, used));
  ColdHeader header;
  in.fill(header.key.bytes);
  in.fill(header.parent.bytes);
  const auto signature = limited(in, kColdMaxText, "signature bytes");
  const auto tokens = limited(in, kColdMaxTokens, "tokens");
  const auto metadata = limited(in, kColdMaxText, "metadata bytes");
  const auto parts = limited(in, kColdMaxParts, "parts");
  header.signature = in.text(signature);
  for (std::uint32_t i = 0; i < tokens; ++i) header.tokens.push_back(in.integer<std::int32_t>());
  header.metadata = in.text(metadata);
  if (in.size() != kPlace * parts)
    fail(ErrorCode::corrupt_file, "cold", "{} bytes for a table of {} parts", in.size(), parts);
  for (std::uint32_t i = 0; i < parts; ++i) {
    ColdPartPlace& place = header.parts.emplace_back();
    place.offset = in.integer<std::uint64_t>();
    place.bytes = in.integer<std::uint64_t>();
    in.fill(place.hash);
  }
  check_places(header.parts, front.size(), file_bytes);
  return header;
}

}  // namespace godwit::cache
