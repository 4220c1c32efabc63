#include "text/stop_strings.h"

#include <gtest/gtest.h>

#include <random>

namespace godwit::text {
namespace {

struct Outcome {
  std::string text;
  std::optional<std::string> matched;
  bool operator==(const Outcome&) const = default;
};

Outcome run(const std::vector<std::string>& stops, const std::vector<std::string>& pieces) {
  StopStrings watcher(stops);
  std::string text;
  for (const std::string& piece : pieces) {
    const StopStrings::Piece got = watcher.add(piece);
    text += got.text;
    if (got.matched) return {text, got.matched};
  }
  return {text + watcher.finish(), std::nullopt};
}

TEST(StopStrings, AMatchOverSeveralPiecesEndsTheText) {
  EXPECT_EQ(run({"</done>"}, {"abc<", "/do", "ne", ">x"}), (Outcome{"abc", "</done>"}));
  EXPECT_EQ(run({"aab"}, {"a", "a", "a", "b"}), (Outcome{"a", "aab"}));
  EXPECT_EQ(run({"jj", "f"}, {"qwfjj"}), (Outcome{"qw", "f"}));
  EXPECT_EQ(run({"\n\n"}, {"\n", "\n", "x"}), (Outcome{"", "\n\n"}));
  EXPECT_EQ(run({"作"}, {"a作b"}), (Outcome{"a", "作"}));
}

TEST(StopStrings, WhatWasHeldBackComesOutAtTheEnd) {
  EXPECT_EQ(run({"</done>"}, {"a</do", "g>"}), (Outcome{"a</dog>", std::nullopt}));
  EXPECT_EQ(run({"</done>"}, {"a</do"}), (Outcome{"a</do", std::nullopt}));
}

TEST(StopStrings, BarredBytesCompleteNoMatchButMayBeginOne) {
  StopStrings watcher({"ab", "bcd"});
  EXPECT_EQ(watcher.add("abc", 3).text, "a");
  const StopStrings::Piece piece = watcher.add("d");
  EXPECT_EQ(piece.text, "");
  EXPECT_EQ(piece.matched, "bcd");
  EXPECT_EQ(StopStrings({"ab"}).add("abxab", 2).text, "abx");
}

TEST(StopStrings, EmptyStopsAreIgnored) { EXPECT_EQ(run({"", "x"}, {"ab", "xc"}), (Outcome{"ab", "x"})); }

TEST(StopStrings, OnlyWhatCouldStillMatchIsHeldBack) {
  StopStrings watcher({"</done>", "END"});
  EXPECT_EQ(watcher.add("hello <").text, "hello ");
  EXPECT_EQ(watcher.add("b>").text, "<b>");
  EXPECT_EQ(watcher.add("EN").text, "");
  EXPECT_EQ(watcher.add("x").text, "ENx");
}

TEST(StopStrings, TheSplitOfTheTextNeverMatters) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const std::vector<std::string> stops = {"aab", "abc", "bc", "cca", "aaaa"};
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (int i = 0; i < 12; ++i) text += "abcd"[random() % 4];
    const Outcome expected = run(stops, {text});
    std::vector<std::string> pieces;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t size = std::min<std::size_t>(1 + random() % 4, text.size() - at);
      pieces.push_back(text.substr(at, size));
      at += size;
    }
    EXPECT_EQ(run(stops, pieces), expected) << text;
  }
}

}  // namespace
}  // namespace godwit::text
