#include "cli/progress_view.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace godwit::cli {
namespace {

using namespace std::chrono_literals;
using Clock = ProgressView::Clock;

hub::GetProgress at(std::uint64_t here, std::uint64_t size) {
  hub::GetProgress progress;
  progress.files = {{"model.safetensors", size, here, hub::FileStage::downloading},
                    {"config.json", 0, 0, hub::FileStage::done}};
  progress.size = size;
  progress.here = progress.fetched = here;
  return progress;
}

TEST(ProgressView, BytesAndTimesReadWell) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(999), "999 B");
  EXPECT_EQ(format_bytes(1000), "1.00 kB");
  EXPECT_EQ(format_bytes(98'362'432), "98.4 MB");
  EXPECT_EQ(format_bytes(999'600), "1.00 MB");
  EXPECT_EQ(format_bytes(4'920'000'000), "4.92 GB");
  EXPECT_EQ(format_duration(65s), "1:05");
  EXPECT_EQ(format_duration(3725s), "1:02:05");
}

TEST(ProgressView, LinesComeEveryFivePercentOrThirtySeconds) {
  std::string out;
  ProgressView view(
      ProgressView::Style::lines, [&](std::string_view text) { out += text; }, [] { return 80; });
  const auto start = Clock::now();
  const auto lines = [&] { return std::count(out.begin(), out.end(), '\n'); };
  for (int i = 0; i <= 1000; ++i) view.update(at(static_cast<std::uint64_t>(i), 1000), start + i * 1ms);
  EXPECT_EQ(lines(), 21);  // 0, 5, ..., 100
  EXPECT_EQ(out.find('\x1b'), std::string::npos);
  ProgressView slow(
      ProgressView::Style::lines, [&](std::string_view text) { out += text; }, [] { return 80; });
  out.clear();
  for (int second = 0; second <= 90; ++second) slow.update(at(1, 1000), start + second * 1s);
  EXPECT_EQ(lines(), 4);  // at 0, 30, 60 and 90 s
}

TEST(ProgressView, BarsAreDrawnAtMostTenTimesASecondAndTheCursorComesBack) {
  std::string out;
  int drawings = 0;
  {
    ProgressView view(
        ProgressView::Style::bars,
        [&](std::string_view text) {
          out += text;
          drawings += text.find("total") != text.npos;
        },
        [] { return 80; });
    const auto start = Clock::now();
    for (int i = 0; i < 1000; ++i)
      view.update(at(static_cast<std::uint64_t>(i) * 1000, 1'000'000), start + i * 1ms);
  }
  EXPECT_EQ(drawings, 10);
  EXPECT_TRUE(out.starts_with("\x1b[?25l"));
  EXPECT_TRUE(out.ends_with("\x1b[?25h"));
  EXPECT_EQ(out.find("config.json"), std::string::npos) << "a finished file needs no bar";
}

TEST(ProgressView, EveryLineFitsTheWindow) {
  for (const int columns : {1, 10, 20, 40, 60, 80, 200}) {
    std::string out;
    {
      ProgressView view(
          ProgressView::Style::bars, [&](std::string_view text) { out += text; }, [&] { return columns; });
      auto progress = at(123'456'789, 9'876'543'210);
      progress.files[0].name = std::string(300, 'n');
      view.update(progress, Clock::now());
    }
    out = out.substr(6, out.find("\x1b[2A") - 6);  // between "hide" and "clear"
    for (std::size_t start = 0; start < out.size();) {
      const auto end = out.find('\n', start);
      EXPECT_LT(end - start, static_cast<std::size_t>(std::max(columns, 2))) << columns;
      start = end + 1;
    }
  }
}

TEST(RateMeter, FollowsTheRateWithinSeconds) {
  RateMeter meter;
  const auto start = Clock::now();
  std::uint64_t bytes = 0;
  for (int i = 0; i <= 100; ++i, bytes += 100'000) meter.update(bytes, start + i * 100ms);
  EXPECT_NEAR(meter.bytes_per_second(), 1e6, 1e3);
  for (int i = 101; i <= 351; ++i)
    meter.update(bytes, start + i * 100ms);  // 25 s of silence: e^-5 of it is left
  EXPECT_LT(meter.bytes_per_second(), 1e6 * 0.008);
}

}  // namespace
}  // namespace godwit::cli
