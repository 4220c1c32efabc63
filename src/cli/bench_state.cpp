#include "cli/bench_state.h"

#include <unistd.h>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/mx_ops.h"
#include "cache/prefix_cache.h"
#include "cli/bench_support.h"
#include "decode/row_runner.h"
#include "models/model_bundle.h"

namespace godwit::cli {
namespace {

using Clock = std::chrono::steady_clock;

template <typename Fn>
double seconds_of(Fn&& fn) {
  const auto begin = Clock::now();
  fn();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

template <typename Fn>
double median_micros(int repeats, Fn&& fn) {
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) times.push_back(seconds_of(fn) * 1e6);
  return median(times);
}

// Bytes that the C heap has handed out and not got back; the pool's blocks and the scratch among them.
// 0 where the C library does not tell.
std::size_t heap_bytes() {
#if defined(__GLIBC__)
  const struct mallinfo2 info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
#else
  return 0;
#endif
}

// A new folder that is empty, private and gone at the end, however that comes.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::error_code error;
    std::string name = (std::filesystem::temp_directory_path(error) / "godwit-bench-XXXXXX").string();
    if (error) fail(ErrorCode::io, "bench", "no folder for temporary files: {}", error.message());
    if (::mkdtemp(name.data()) == nullptr)
      fail(ErrorCode::io, "bench", "{}: cannot make a folder: {}", name, std::strerror(errno));
    path_ = name;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

constexpr int kPipelinedSteps = 200, kGrowthSteps = 50;

// One model with rows that are moved along without looking at logits.
class Bench {
 public:
  Bench(const models::ModelOptions& model, const StateBenchOptions& options, const Log& log)
      : options_(options), bundle_(models::ModelBundle::open(model, log)) {
    if (bundle_->mode != NumericMode::native)
      fail(ErrorCode::unsupported, "bench", "--state measures native mode; this model runs in reference");
  }

  Json run() {
    check_context();
    decode::RowRunner runner = fresh();
    const double prefill = seconds_of([&] { advance(runner, options_.prefix); });
    Json report = {{"kv", cache::to_string(bundle_->options.kv)}, {"kv_start", bundle_->options.kv.start}};
    report["bytes_per_token"] = bundle_->store->bytes_per_token();
    report["bytes_per_token_codecs"] = codec_bytes();
    report["restore"] = restore(runner.row(), prefill);
    advance(runner, options_.row - options_.prefix);
    report["row_operations"] = row_operations(runner.row());
    report["pipelined"] = pipelined(runner);
    report["allocation"] = allocation();
    if (bundle_->options.kv.start > 0) report["conversion"] = conversion();
    return report;
  }

 private:
  std::vector<int> tokens(int begin, int end) const { return spread_tokens(begin, end, bundle_->vocabulary); }

  decode::RowRunner fresh() const { return decode::RowRunner(*bundle_); }

  // Before minutes are spent on what fits.
  void check_context() const {
    const int start = bundle_->options.kv.start;
    check_room(std::max({options_.row + kPipelinedSteps, growth_start(options_.near) + 1 + kGrowthSteps,
                         growth_start(options_.far) + 1 + kGrowthSteps, start > 0 ? start + 1 : 0}));
  }

  // The model's own positions end there: what a row of more tokens costs is no fact about this model.
  void check_room(int end) const {
    if (end > bundle_->context_length)
      fail(ErrorCode::context_overflow, "bench",
           "--state fills a row of {} tokens, and this model's maximum context length is {} tokens", end,
           bundle_->context_length);
  }

  static int growth_start(int length) { return length / 64 * 64 + 2; }

  void step(decode::RowRunner& runner) const { runner.store(tokens(runner.position(), runner.position() + 1)); }

  void advance(decode::RowRunner& runner, int count) const {
    check_room(runner.position() + count);
    for (const int end = runner.position() + count; runner.position() < end;) {
      const int chunk = std::min(end - runner.position(), static_cast<int>(runner.chunk_tokens()));
      runner.store(tokens(runner.position(), runner.position() + chunk));
    }
  }

  // Of this model's layers under every codec that can hold them, beside bf16.
  Json codec_bytes() const {
    Json bytes = Json::object();
    for (const char* name : {"dense:f32", "dense:bf16", "affine:8:64", "affine:4:64", "affine:4:32", "affine:2:64",
                             "turbo:8:4", "turbo:8:3", "turbo:4:3"}) {
      try {
        bytes[name] = bundle_->make_store(cache::parse_kv_policy(name))->bytes_per_token();
      } catch (const Error& refused) {
        bytes[name] = refused.what();
      }
    }
    return bytes;
  }

  // The prefix as a new process finds it: records on disk, in the page cache of the system, and nothing in memory.
  Json restore(const cache::Row& row, double prefill) {
    const ScratchFolder folder;
    const std::vector<int> ids = tokens(0, row.position() + 1);
    double found = 0;
    int position = 0;
    {
      cache::ColdTier cold({.folder = folder.path(), .hooks = {}}, Log());
      cache::PrefixCache cache(*bundle_->store, {.cap_bytes = std::size_t{8} << 30, .identity = "bench"}, &cold);
      cache.insert(row, std::span(ids).first(ids.size() - 1));
      cold.flush();
    }
    {
      cache::ColdTier cold({.folder = folder.path(), .hooks = {}}, Log());
      std::vector<double> times;
      for (int i = 0; i < options_.repeats; ++i) {
        cache::PrefixCache cache(*bundle_->store, {.cap_bytes = std::size_t{8} << 30, .identity = "bench"}, &cold);
        times.push_back(seconds_of([&] {
          const auto hit = cache.find(ids);
          position = hit ? hit->position() : 0;
        }));
        if (position != row.position())
          fail(ErrorCode::internal, "bench", "{} tokens came back from disk, not {}", position, row.position());
      }
      found = median(times);
    }
    return {{"tokens", position}, {"prefill_s", prefill}, {"restore_s", found}, {"times_faster", prefill / found}};
  }

  Json row_operations(const cache::Row& row) const {
    const int length = row.position(), repeats = 20 * options_.repeats;
    std::vector<cache::Row> batch;
    const std::size_t before = bundle_->store->resident_bytes();
    const double fork = median_micros(repeats, [&] {
      batch.clear();
      batch.push_back(row.fork(length));
    });
    std::vector<double> cuts;
    for (int i = 0; i < repeats; ++i) {
      cache::Row cut = row.fork(length);
      cuts.push_back(seconds_of([&] { cut.truncate(length - 100); }) * 1e6);
    }
    for (int i = 0; i < 7; ++i) batch.push_back(row.fork(length));
    const double filter = median_micros(repeats, [&] {
      std::rotate(batch.begin(), batch.begin() + 3, batch.end());
      cache::Row taken = std::move(batch.back());
      batch.pop_back();
      batch.insert(batch.begin(), std::move(taken));
    });
    return {{"tokens", length},
            {"fork_us", fork},
            {"truncate_us", median(cuts)},
            {"filter_and_merge_us", filter},
            {"kv_bytes_copied", bundle_->store->resident_bytes() - before}};
  }

  // Steps of one row while forks of it are read and kept: only the blocks that the row itself fills may come.
  Json pipelined(decode::RowRunner& runner) const {
    std::vector<cache::Row> held;
    const std::size_t before = bundle_->store->resident_bytes(), row_before = runner.row().bytes();
    for (int i = 0; i < kPipelinedSteps; ++i) {
      if (i % 20 == 0) held.push_back(runner.row().fork(runner.position()));
      step(runner);
    }
    const std::size_t grown = bundle_->store->resident_bytes() - before;
    return {{"steps", kPipelinedSteps}, {"forks_alive", held.size()}, {"extra_bytes", grown - (runner.row().bytes() - row_before)}};
  }

  // What the heap keeps after steps that stay inside a block, and the scratch that a step works in.
  Json growth_at(int length) {
    decode::RowRunner runner = fresh();
    advance(runner, growth_start(length));
    step(runner);
    const std::size_t before = heap_bytes();
    for (int i = 0; i < kGrowthSteps; ++i) step(runner);
    const auto grown = static_cast<std::int64_t>(heap_bytes()) - static_cast<std::int64_t>(before);
    return {{"tokens", runner.position()}, {"heap_growth_per_step", grown / kGrowthSteps}, {"scratch_bytes", bundle_->executor->held_bytes()}};
  }

  Json allocation() {
    const Json near = growth_at(options_.near);
    return Json::array({near, growth_at(options_.far)});
  }

  // The step that turns a row of `start` tokens, beside the row's own step before it.
  Json conversion() {
    const int start = bundle_->options.kv.start;
    std::vector<double> usual, turning;
    for (int i = 0; i < options_.repeats; ++i) {
      decode::RowRunner runner = fresh();
      advance(runner, start - 1);
      usual.push_back(seconds_of([&] { step(runner); }));
      turning.push_back(seconds_of([&] { step(runner); }));
    }
    return {{"start", start}, {"step_before_s", median(usual)}, {"step_that_turns_s", median(turning)}};
  }

  StateBenchOptions options_;
  std::unique_ptr<models::ModelBundle> bundle_;
};

}  // namespace

Json bench_state(const models::ModelOptions& model, const StateBenchOptions& options, const Log& log) {
  return Bench(model, options, log).run();
}

}  // namespace godwit::cli
