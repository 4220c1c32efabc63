// How `godwit get` shows a download on standard error: bars for people, sparse lines for logs.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "hub/progress.h"

namespace godwit::cli {

// "1.23 GB", decimal units, three digits.
std::string format_bytes(std::uint64_t bytes);
// "2:05" or "1:02:05".
std::string format_duration(std::chrono::seconds time);

// Bytes per second as an average that forgets with a time constant of 5 s.
class RateMeter {
 public:
  void update(std::uint64_t total_bytes, std::chrono::steady_clock::time_point now);
  double bytes_per_second() const { return rate_; }

 private:
  bool has_sample_ = false;
  std::uint64_t last_bytes_ = 0;
  std::chrono::steady_clock::time_point last_time_;
  double rate_ = 0;
};

class ProgressView {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Style { none, bars, lines };
  // Bytes for the terminal; `columns` is asked before every drawing, so a resized window is followed.
  using Write = std::function<void(std::string_view)>;

  ProgressView(Style style, Write write, std::function<int()> columns);
  ~ProgressView();  // takes the bars away and shows the cursor again
  ProgressView(const ProgressView&) = delete;
  ProgressView& operator=(const ProgressView&) = delete;

  // Bars: one for each file in work and one for the whole, at most ten times a second. Lines: one for every 5
  // % or 30 s.
  void update(const hub::GetProgress& progress, Clock::time_point now);
  // A line of text above the bars.
  void note(std::string_view line);
  void clear();

 private:
  void draw_bars(const hub::GetProgress& progress);
  void print_line(const hub::GetProgress& progress, Clock::time_point now);
  std::string total_line(const hub::GetProgress& progress, int columns) const;

  Style style_;
  Write write_;
  std::function<int()> columns_;
  RateMeter rate_;
  Clock::time_point last_draw_;
  int drawn_lines_ = 0;
  int last_percent_ = -5;  // so that the first line comes at once
};

}  // namespace godwit::cli
