#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>

#include "base/error.h"
#include "cli/interrupt.h"
#include "cli/line_reader.h"
#include "cli/prompt.h"
#include "cli/suggestion.h"

namespace godwit::cli {
namespace {

TEST(Suggestion, names_the_nearest_word_and_nothing_far_away) {
  const std::vector<std::string> words = {"--temp", "--top-k", "--top-p", "-n", "--kv"};
  EXPECT_EQ(nearest_word("--tmep", words), "--temp");  // two neighbours swapped: one edit
  EXPECT_EQ(nearest_word("--top_k", words), "--top-k");
  EXPECT_EQ(nearest_word("--top-x", words), "--top-k");  // the first of equals
  EXPECT_EQ(nearest_word("--kv", words), "--kv");
  EXPECT_EQ(nearest_word("--quantum-foam", words), std::nullopt);
  EXPECT_EQ(nearest_word("x", {}), std::nullopt);
}

TEST(Prompt, token_lists_are_numbers_between_commas) {
  EXPECT_EQ(parse_token_list("1"), (std::vector<int>{1}));
  EXPECT_EQ(parse_token_list("1,20,300"), (std::vector<int>{1, 20, 300}));
  for (const char* text : {"", ",", "1,", ",1", "1,,2", "1 ,2", "0x1", "1.0", "+1", "99999999999"})
    EXPECT_THROW(parse_token_list(text), Error) << text;
}

// A pipe whose writing end the test fills by hand.
struct Input {
  std::array<int, 2> ends = {};
  Input() { EXPECT_EQ(pipe(ends.data()), 0); }
  ~Input() {
    close(ends[0]);
    finish();
  }
  void write_text(std::string_view text) {
    EXPECT_EQ(write(ends[1], text.data(), text.size()), std::ssize(text));
  }
  void finish() {
    if (ends[1] >= 0) close(ends[1]);
    ends[1] = -1;
  }
};

TEST(LineReader, hands_out_lines_however_they_arrive) {
  install_signal_handlers();
  InterruptGuard interrupts;
  Input input;
  LineReader reader(input.ends[0], interrupts);
  std::string line;
  input.write_text("one\n\ntwo\r\nthr");
  for (const char* wanted : {"one", "", "two"}) {
    ASSERT_EQ(reader.next(line), LineReader::Event::line);
    EXPECT_EQ(line, wanted);
  }
  input.write_text("ee");
  input.finish();
  ASSERT_EQ(reader.next(line), LineReader::Event::line);  // a last line without a newline
  EXPECT_EQ(line, "three");
  EXPECT_EQ(reader.next(line), LineReader::Event::end);
  EXPECT_EQ(reader.next(line), LineReader::Event::end);
}

TEST(LineReader, ctrl_c_is_an_event_and_loses_no_input) {
  install_signal_handlers();
  InterruptGuard interrupts;
  Input input;
  LineReader reader(input.ends[0], interrupts);
  input.write_text("kept\n");
  raise(SIGINT);
  std::string line;
  EXPECT_EQ(reader.next(line), LineReader::Event::interrupt);
  ASSERT_EQ(reader.next(line), LineReader::Event::line);
  EXPECT_EQ(line, "kept");
  raise(SIGINT);
  EXPECT_TRUE(interrupts.take());
  EXPECT_FALSE(interrupts.take());
}

TEST(Interrupt, without_a_guard_ctrl_c_leaves_with_130) {
  EXPECT_EXIT((install_signal_handlers(), raise(SIGINT)), ::testing::ExitedWithCode(130), "");
}

TEST(Interrupt, while_a_stop_takes_long_a_further_ctrl_c_leaves_with_130) {
  const auto press_twice = [] {
    install_signal_handlers();
    InterruptGuard interrupts;
    raise(SIGINT);
    if (!interrupts.take()) _exit(3);
    { const InterruptGuard::Impatience over; }
    raise(SIGINT);  // the stop is done: counted again
    if (!interrupts.take()) _exit(4);
    const InterruptGuard::Impatience impatience;
    raise(SIGINT);
  };
  EXPECT_EXIT(press_twice(), ::testing::ExitedWithCode(130), "");
}

}  // namespace
}  // namespace godwit::cli
