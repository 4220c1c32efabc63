// What a download tells its caller ten times a second.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace godwit::hub {

enum class FileStage { waiting, locked, hashing, downloading, done };

struct FileProgress {
  std::string name;
  std::uint64_t size = 0;
  std::uint64_t here = 0;  // bytes on this disk, whoever fetched them
  FileStage stage = FileStage::waiting;
};

struct GetProgress {
  std::vector<FileProgress> files;
  std::uint64_t size = 0;     // sum over the files
  std::uint64_t here = 0;     // sum over the files
  std::uint64_t fetched = 0;  // bytes that came over the network in this run; the rate is its derivative
};

using ProgressSink = std::function<void(const GetProgress&)>;  // called on the thread that called get()

}  // namespace godwit::hub
