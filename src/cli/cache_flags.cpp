#include "cli/cache_flags.h"

#include <cctype>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <system_error>

#include "base/error.h"

namespace godwit::cli {
namespace {

namespace fs = std::filesystem;

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// Behind the number: 1 for none, -1 for anything that is no unit.
double unit_of(std::string_view unit) {
  if (unit.ends_with("ib")) {
    unit.remove_suffix(2);
    if (unit.empty()) return -1;
  } else if (unit.ends_with('b')) {
    unit.remove_suffix(1);
  }
  if (unit.empty()) return 1;
  const auto at = std::string_view("kmgt").find(unit);
  return at == std::string_view::npos || unit.size() != 1 ? -1 : std::pow(1024.0, static_cast<double>(at + 1));
}

void check_filled(std::string_view flag, const std::optional<std::string>& value, std::string_view wanted) {
  if (value && value->empty()) fail(ErrorCode::invalid_argument, "cli", "{} is empty: {} is needed", flag, wanted);
}

}  // namespace

std::uint64_t parse_bytes(std::string_view text, std::string_view flag) {
  const std::string lowered = lower(text);
  const char* const end = lowered.data() + lowered.size();
  double number = 0;
  const auto [rest, problem] = std::from_chars(lowered.data(), end, number, std::chars_format::fixed);
  const double unit = unit_of({rest, static_cast<std::size_t>(end - rest)});
  const bool is_number = problem == std::errc() && !lowered.empty() && lowered.front() != '-' && std::isfinite(number);
  // 2^53: what a double counts exactly.
  if (!is_number || unit < 0 || number * unit > 9007199254740992.0)
    fail(ErrorCode::invalid_argument, "cli", "{} {}: a number of bytes is needed, such as 512M or 2G", flag, text);
  return static_cast<std::uint64_t>(number * unit);
}

void CacheFlags::add_to(CLI::App& verb) {
  verb.add_option("--prompt-cache", memory,
                  "Memory for computed prompts, such as 512M or 2G; off or 0 for none (default: 1G, or a quarter of the free "
                  "memory if that is less; reference arithmetic: off)");
  add_disk_to(verb);
}

void CacheFlags::add_disk_to(CLI::App& verb) {
  verb.add_option("--cache-dir", folder, "Keep computed prompts in this private folder, too (default: nowhere)");
  verb.add_option("--cache-disk", disk, "The most bytes that --cache-dir may hold (default: 32G)");
}

decode::PromptCacheOptions CacheFlags::options(decode::PromptCacheOptions::Use use) const {
  using Use = decode::PromptCacheOptions::Use;
  check_filled("--prompt-cache", memory, "a size or off");
  check_filled("--cache-dir", folder, "a folder");
  check_filled("--cache-disk", disk, "a size");
  decode::PromptCacheOptions options;
  options.use = use;
  if (memory) {
    const std::uint64_t bytes = *memory == "off" ? 0 : parse_bytes(*memory, "--prompt-cache");
    options.use = bytes == 0 ? Use::off : Use::on;
    options.memory_bytes = static_cast<std::size_t>(bytes);
  }
  if (!folder) {
    if (disk) fail(ErrorCode::invalid_argument, "cli", "--cache-disk needs a --cache-dir");
    return options;
  }
  if (memory && options.use == Use::off)
    fail(ErrorCode::invalid_argument, "cli",
         "--cache-dir needs a prompt cache in memory, and --prompt-cache {} is none", *memory);
  if (std::error_code none; fs::exists(*folder, none) && !fs::is_directory(*folder, none))
    fail(ErrorCode::invalid_argument, "cli", "--cache-dir {}: there is something that is no folder", *folder);
  options.use = Use::on;
  options.folder = *folder;
  if (disk) options.disk_bytes = parse_bytes(*disk, "--cache-disk");
  if (options.disk_bytes == 0)
    fail(ErrorCode::invalid_argument, "cli", "--cache-disk {}: there is no room for anything", *disk);
  return options;
}

}  // namespace godwit::cli
