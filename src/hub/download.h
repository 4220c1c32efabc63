// `godwit get`: a repository of a Hugging Face style hub, as a snapshot in the shared cache (layout:
// hub_paths.h).
//
// The commit is asked for once and pinned, files come `parallel` at a time, every byte is checked against the
// hash the hub announced, and refs/<revision> is written last: an interrupted download never looks complete
// and continues where it stopped. Nothing is printed; progress goes to a callback.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/environment.h"
#include "base/log.h"
#include "hub/disk.h"
#include "hub/file_choice.h"
#include "hub/http_client.h"
#include "hub/progress.h"
#include "hub/retry.h"

namespace godwit::hub {

struct HubOptions {
  std::filesystem::path cache_root;
  std::string endpoint;  // no trailing slash
  std::string token;     // empty: anonymous
  bool offline = false;  // no socket is opened
  int parallel = 4;
  std::uint64_t disk_reserve = 1ull << 30;  // bytes that must stay free
  HttpOptions http;
  RetryPolicy retry;
  DiskCalls disk = real_disk();
};

// HF_ENDPOINT, HF_HUB_CACHE and friends, HF_TOKEN and friends, HF_HUB_OFFLINE, SSL_CERT_FILE.
HubOptions hub_options(const Environment& environment);

struct GetRequest {
  std::string repo;  // ORG/NAME
  std::string revision = "main";
  FileChoice choice;
  bool dry_run = false;  // plan only: asks the hub, writes nothing
};

struct PlannedFile {
  std::string name;
  std::uint64_t size = 0;
  std::uint64_t missing = 0;  // bytes not on this disk when the plan was made
};

struct GetResult {
  std::string repo, revision, commit;
  std::filesystem::path snapshot;
  std::vector<PlannedFile> files;
  std::uint64_t size = 0;     // sum over the files
  std::uint64_t missing = 0;  // sum over the files
  std::uint64_t fetched = 0;  // bytes that came over the network
};

// Blocks; `progress` (may be empty) runs on this thread every 100 ms, `stop` on any. Throws Error: network,
// not_found, io (disk full, before or during), corrupt_file (checksums), cancelled.
GetResult get_repository(const GetRequest& request, const HubOptions& options, const ProgressSink& progress,
                         const StopCheck& stop, const Log& log);

}  // namespace godwit::hub
