#include "cli/progress_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace godwit::cli {
namespace {

using std::chrono::seconds;

constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr auto kQuietTime = seconds(30);
constexpr int kPercentStep = 5;
constexpr std::size_t kMostBars = 8;
constexpr std::string_view kHideCursor = "\x1b[?25l";
constexpr std::string_view kShowCursor = "\x1b[?25h";

double share(std::uint64_t here, std::uint64_t size) {
  return size == 0 ? 1.0 : static_cast<double>(here) / static_cast<double>(size);
}

std::string bar(double filled, int width) {
  const int full = std::clamp(static_cast<int>(filled * width), 0, width);
  return std::string(static_cast<std::size_t>(full), '#') +
         std::string(static_cast<std::size_t>(width - full), '.');
}

// Control characters cannot occur (the hub module refuses such names), so bytes are columns but for UTF-8,
// where a name may come out a little short.
std::string fit(std::string text, int width) {
  const auto limit = static_cast<std::size_t>(std::max(width, 0));
  if (text.size() > limit)
    text = limit > 3 ? "..." + text.substr(text.size() - limit + 3) : text.substr(0, limit);
  return text + std::string(limit - text.size(), ' ');
}

std::string_view word_of(hub::FileStage stage) {
  switch (stage) {
    case hub::FileStage::locked:
      return "waiting for another download";
    case hub::FileStage::hashing:
      return "checking";
    default:
      return "";
  }
}

std::string file_line(const hub::FileProgress& file, int columns) {
  const int name_width = std::clamp(columns / 3, 10, 40);
  const int bar_width = std::clamp(columns - name_width - 32, 0, 40);
  const auto word = word_of(file.stage);
  const auto detail =
      word.empty() ? format_bytes(file.here) + " / " + format_bytes(file.size) : std::string(word);
  const auto text = fmt::format("{} {} {:3.0f} % {}", fit(file.name, name_width),
                                bar(share(file.here, file.size), bar_width),
                                std::floor(100 * share(file.here, file.size)), detail);
  return text.substr(0, static_cast<std::size_t>(std::max(columns - 1, 1)));
}

}  // namespace

std::string format_bytes(std::uint64_t bytes) {
  static constexpr std::array<const char*, 5> kUnits = {"B", "kB", "MB", "GB", "TB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < kUnits.size(); ++unit) value /= 1000;
  const int decimals = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}", value, decimals, kUnits[unit]);
}

std::string format_duration(seconds time) {
  const auto all = time.count();
  if (all >= 3600) return fmt::format("{}:{:02}:{:02}", all / 3600, all / 60 % 60, all % 60);
  return fmt::format("{}:{:02}", all / 60, all % 60);
}

void RateMeter::update(std::uint64_t total_bytes, std::chrono::steady_clock::time_point now) {
  const std::chrono::duration<double> passed = now - last_time_;
  if (has_sample_ && passed.count() > 0) {
    constexpr double kTimeConstant = 5;
    const double current = static_cast<double>(total_bytes - last_bytes_) / passed.count();
    const double weight = rate_ == 0 ? 1 : 1 - std::exp(-passed.count() / kTimeConstant);
    rate_ += weight * (current - rate_);
  }
  has_sample_ = true;
  last_bytes_ = total_bytes;
  last_time_ = now;
}

ProgressView::ProgressView(Style style, Write write, std::function<int()> columns)
    : style_(style), write_(std::move(write)), columns_(std::move(columns)) {
  if (style_ == Style::bars) write_(kHideCursor);
}

ProgressView::~ProgressView() {
  if (style_ != Style::bars) return;
  clear();
  write_(kShowCursor);
}

void ProgressView::update(const hub::GetProgress& progress, Clock::time_point now) {
  if (style_ == Style::none) return;
  if (style_ == Style::lines) return print_line(progress, now);
  if (drawn_lines_ > 0 && now - last_draw_ < kRedraw) return;
  rate_.update(progress.fetched, now);
  last_draw_ = now;
  draw_bars(progress);
}

void ProgressView::clear() {
  if (drawn_lines_ > 0) write_(fmt::format("\x1b[{}A\r\x1b[J", drawn_lines_));
  drawn_lines_ = 0;
}

void ProgressView::note(std::string_view line) {
  clear();
  write_(fmt::format("{}\n", line));
}

// One write for the whole picture: a terminal then never shows half of it.
void ProgressView::draw_bars(const hub::GetProgress& progress) {
  const int columns = columns_();
  std::string picture;
  if (drawn_lines_ > 0) picture = fmt::format("\x1b[{}A\r\x1b[J", drawn_lines_);
  drawn_lines_ = 1;
  std::size_t shown = 0;
  for (const auto& file : progress.files) {
    if (file.stage == hub::FileStage::waiting || file.stage == hub::FileStage::done || shown == kMostBars)
      continue;
    picture += file_line(file, columns) + "\n";
    ++shown;
    ++drawn_lines_;
  }
  write_(picture + total_line(progress, columns) + "\n");
}

std::string ProgressView::total_line(const hub::GetProgress& progress, int columns) const {
  const double done = share(progress.here, progress.size);
  std::string text =
      fmt::format("total {} {:3.0f} % {} / {}", bar(done, std::clamp(columns - 58, 0, 40)),
                  std::floor(100 * done), format_bytes(progress.here), format_bytes(progress.size));
  if (const double rate = rate_.bytes_per_second(); rate >= 1) {
    const auto left = static_cast<double>(progress.size - progress.here) / rate;
    text += fmt::format("  {}/s", format_bytes(static_cast<std::uint64_t>(rate)));
    if (left < 360000) text += "  " + format_duration(seconds(static_cast<long>(std::ceil(left)))) + " left";
  }
  return text.substr(0, static_cast<std::size_t>(std::max(columns - 1, 1)));
}

void ProgressView::print_line(const hub::GetProgress& progress, Clock::time_point now) {
  rate_.update(progress.fetched, now);
  const int percent = static_cast<int>(100 * share(progress.here, progress.size));
  if (percent < last_percent_ + kPercentStep && now - last_draw_ < kQuietTime) return;
  last_percent_ = percent - percent % kPercentStep;
  last_draw_ = now;
  write_(fmt::format("{:3} %  {} of {}  {}/s\n", percent, format_bytes(progress.here),
                     format_bytes(progress.size),
                     format_bytes(static_cast<std::uint64_t>(rate_.bytes_per_second()))));
}

}  // namespace godwit::cli
