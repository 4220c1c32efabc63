// Reasoning in all places where models put it.
#include "text/turn/turn_test_support.h"

namespace godwit::text {
namespace {

using namespace turn_test;

const std::string kCall = "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>";

struct Case {
  std::string text;
  bool is_in_reasoning;
  std::string reasoning, content;
  std::size_t calls = 0;
};

TEST(Reasoning, IsSplitFromContentWhereverItStands) {
  const std::vector<Case> cases = {
      {"<think>\nhm\n</think>\n\nyes", false, "hm", "yes"},
      {"hm\n</think>\n\nyes", true, "hm", "yes"},
      {"<think>\nhm</think>yes", true, "hm", "yes"},  // written once more behind the prompt's
      {"<think></think>yes", false, "", "yes"},
      {"<think>\n\n</think>\n\nyes", false, "", "yes"},
      {"\n</think>\n\nyes", true, "", "yes"},
      {"yes", false, "", "yes"},
      {"  yes", false, "", "  yes"},
      {"<think>a</think>x<think>b</think>y", false, "ab", "xy"},
      {"<think>a</think>" + kCall + "\n<think>b</think>\n\n" + kCall + "\n\nok", false, "ab", "\n\nok", 2},
      {"<think>never closed", false, "never closed", ""},
      {"never closed </thin", true, "never closed </thin", ""},
      {"yes</think>no", false, "", "yesno"},  // nothing was open: the marker alone goes
      {"<think>" + kCall + "</think>no call", false, kCall, "no call"},
      {"a\nb\n\nc\n</think>\n", true, "a\nb\n\nc", ""},
      {"<think>x</think> \n " + kCall, false, "x", "", 1},
      {"\n\n<think>x</think>y", false, "x", "y"},
  };
  std::mt19937 random(3);
  for (const Case& one : cases) {
    const Turn turn = parse_every_way(format_of(ToolFormat::hermes), tools(), one.text, random,
                                      {.is_in_reasoning = one.is_in_reasoning});
    EXPECT_EQ(turn.reasoning, one.reasoning) << one.text;
    EXPECT_EQ(turn.content, one.content) << one.text;
    EXPECT_EQ(turn.calls.size(), one.calls) << one.text;
  }
}

TEST(Reasoning, HasMarkersOfItsOwnInSomeFamilies) {
  const std::vector<std::pair<std::string, std::string>> markers = {{"[THINK]", "[/THINK]"},
                                                                    {"<|channel>thought", "<channel|>"},
                                                                    {"<longcat_think>", "</longcat_think>"},
                                                                    {"<seed:think>", "</seed:think>"}};
  std::mt19937 random(4);
  for (const auto& [open, close] : markers) {
    const TurnFormat format{.tools = ToolFormat::mistral, .reasoning_open = open, .reasoning_close = close};
    const Turn turn = parse_every_way(format, tools(), open + "\nhm [x] < y\n" + close + "a [b]", random);
    EXPECT_EQ(turn, (Turn{"hm [x] < y", "a [b]", {}}));
  }
}

TEST(Reasoning, CountsTokensOfItsSpanAlone) {
  TurnParser parser(format_of(ToolFormat::none), {}, {});
  const std::vector<std::pair<std::string, bool>> tokens = {{"<think>", true}, {"a", true}, {"</think>", true},
                                                            {"b", false}, {"c", false}};
  for (const auto& [text, is_in] : tokens) {
    parser.add(-1, text);
    EXPECT_EQ(parser.is_in_reasoning(), is_in) << text;
  }
}

}  // namespace
}  // namespace godwit::text
