// Files that appear whole or not at all.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace godwit {

class AtomicFile {
 public:
  // A temporary file beside `path` that only its owner can read. It is locked as long as its writer lives. Throws
  // Error{io}, as the others do.
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();  // removes it unless it was committed
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  // Takes the place of whatever was at `path`.
  void commit();

 private:
  std::filesystem::path path_;
  std::string temporary_;
  int descriptor_ = -1;
};

// Makes a folder that only its owner can enter, where there is none. What goes wrong shows when a file is made there.
void make_private_folder(const std::filesystem::path& folder);

// Removes from `folder` what writers of AtomicFile left that died before they committed. `is_ours` is asked for the name
// of the file that would have become. Errors end it.
void reap_unfinished(const std::filesystem::path& folder, const std::function<bool(std::string_view name)>& is_ours);

}  // namespace godwit
