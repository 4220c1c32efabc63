#include "text/utf8.h"

namespace godwit::text {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// The range of the second byte narrows for some lead bytes (no overlong forms, no surrogates, nothing past
// U+10FFFF).
struct Lead {
  int length;
  unsigned char second_low, second_high;
};

Lead lead_of(unsigned char byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

}  // namespace

int utf8_character(std::string_view bytes) {
  if (bytes.empty()) return 0;
  const Lead lead = lead_of(static_cast<unsigned char>(bytes[0]));
  if (lead.length == 0) return -1;
  for (int at = 1; at < lead.length; ++at) {
    if (static_cast<std::size_t>(at) == bytes.size()) return 0;
    const auto byte = static_cast<unsigned char>(bytes[at]);
    const unsigned char low = at == 1 ? lead.second_low : 0x80;
    const unsigned char high = at == 1 ? lead.second_high : 0xBF;
    if (byte < low || byte > high) return -at;
  }
  return lead.length;
}

std::string Utf8Stream::add(std::string_view bytes) {
  pending_.append(bytes);
  std::string out;
  std::string_view rest = pending_;
  while (!rest.empty()) {
    const int size = utf8_character(rest);
    if (size == 0) break;
    if (size > 0) {
      out.append(rest.substr(0, size));
      rest.remove_prefix(size);
      continue;
    }
    out.append(kReplacement);
    rest.remove_prefix(replacement_ == Replacement::every_byte ? 1 : -size);
  }
  pending_ = std::string(rest);
  return out;
}

std::string Utf8Stream::finish() {
  std::string out;
  const std::size_t count = replacement_ == Replacement::every_byte ? pending_.size() : !pending_.empty();
  for (std::size_t i = 0; i < count; ++i) out.append(kReplacement);
  pending_.clear();
  return out;
}

CodePoint first_code_point(std::string_view valid) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(valid[at]); };
  const Lead lead = lead_of(byte(0));
  if (lead.length <= 1) return {byte(0), 1};
  char32_t value = byte(0) & (0x7F >> lead.length);
  for (int at = 1; at < lead.length; ++at) value = value << 6 | (byte(at) & 0x3F);
  return {value, static_cast<std::size_t>(lead.length)};
}

void append_utf8(std::string& out, char32_t code_point) {
  const auto put = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | code_point >> 6);
    put(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    put(0xE0 | code_point >> 12);
    put(0x80 | (code_point >> 6 & 0x3F));
    put(0x80 | (code_point & 0x3F));
  } else {
    put(0xF0 | code_point >> 18);
    put(0x80 | (code_point >> 12 & 0x3F));
    put(0x80 | (code_point >> 6 & 0x3F));
    put(0x80 | (code_point & 0x3F));
  }
}

}  // namespace godwit::text
