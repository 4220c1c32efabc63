// An exclusive flock on .locks/models--ORG--NAME/<hash>.lock, the file that huggingface_hub locks, too: two
// programs (or two threads) that want one blob download it once. The file stays behind; removing it would let
// two waiters lock two inodes.
#pragma once

#include <filesystem>

#include "hub/disk.h"
#include "hub/http_client.h"

namespace godwit::hub {

class BlobLock {
 public:
  // Waits; throws Error{cancelled} when `stop` says so and Error{io} when the file cannot be made or locked.
  BlobLock(const std::filesystem::path& path, const StopCheck& stop);

 private:
  File file_;  // closing it releases the lock
};

}  // namespace godwit::hub
