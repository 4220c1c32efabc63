// Brings one blob into the cache, whatever state an earlier try left it in.
//
//   lock -> already here? -> hash what is here -> GET with Range -> hash while writing -> compare -> fsync ->
//   rename
//
// 206 must continue exactly where we are and agree on the total; 200 starts again at zero; 416 drops the
// partial file. Wrong bytes: the partial file is deleted and fetched once more, then it is an error. Broken
// transfers and the statuses of retry.h are tried again; `attempts` counts tries that brought no new byte.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>

#include "base/log.h"
#include "hub/disk.h"
#include "hub/http_client.h"
#include "hub/progress.h"
#include "hub/repo_api.h"
#include "hub/retry.h"

namespace godwit::hub {

// Shared by the worker that fetches a file and the thread that draws.
struct FileCounters {
  std::atomic<std::uint64_t> here = 0;
  std::atomic<std::uint64_t> fetched = 0;
  std::atomic<FileStage> stage = FileStage::waiting;
};

struct BlobJob {
  const RepoFile& file;
  std::string repo, commit, endpoint, token;
  std::filesystem::path blob, lock;
};

struct BlobTools {
  HttpClient& http;
  const DiskCalls& disk;
  const RetryPolicy& retry;
  const StopCheck& stop;
  const Log& log;
};

// True when this call put the blob there, false when it was there before. Throws Error.
bool fetch_blob(const BlobJob& job, const BlobTools& tools, FileCounters& counters);

}  // namespace godwit::hub
