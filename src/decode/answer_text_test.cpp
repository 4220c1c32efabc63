// Text, stop strings and end ids through a whole engine over one-byte tokens, so that every character and
// every stop string crosses tokens.
#include "decode/answer_text.h"

#include <gtest/gtest.h>

#include "decode/engine.h"
#include "support/byte_tokenizer.h"
#include "support/scripted_model.h"

namespace godwit::decode {
namespace {

constexpr int kEnd = 256;
constexpr int kWidth = 260;  // some models pad their logits past the tokenizer's vocabulary

struct Spoken {
  std::string text;
  std::vector<std::string> pieces;
  std::size_t tokens = 0;
  FinishReason finish = FinishReason::none;
  std::optional<std::string> match;
};

// What a request for `stops` receives from a model that says `bytes` and then the end token.
Spoken spoken(const std::vector<int>& ids, const GenerationRequest& wanted) {
  testing::Script script{.logits = [ids](int position) {
    const auto at = static_cast<std::size_t>(position);
    return testing::one_hot(at < ids.size() ? ids[at] : kEnd, kWidth);
  }};
  script.vocabulary = kWidth;
  script.end_ids = {kEnd};
  Engine engine([&] { return testing::scripted_bundle(script, testing::byte_tokenizer()); }, Log());
  GenerationRequest request = wanted;
  request.prompt = {'?'};
  request.sampling.temperature = 0;
  Job job = engine.submit(request);
  Spoken spoken;
  while (const std::optional<TokenEvent> event = job.next()) {
    spoken.text += event->text;
    spoken.pieces.push_back(event->text);
    spoken.tokens += event->id >= 0;
    spoken.finish = event->finish;
    spoken.match = event->stop_match;
  }
  return spoken;
}

Spoken spoken(const std::vector<int>& ids, std::vector<std::string> stops = {}, int max_tokens = -1) {
  GenerationRequest request;
  request.stop = std::move(stops);
  request.max_tokens = max_tokens;
  return spoken(ids, request);
}

std::vector<int> bytes(std::string_view text) {
  std::vector<int> ids;
  for (const char byte : text) ids.push_back(static_cast<unsigned char>(byte));
  return ids;
}

TEST(AnswerText, the_earliest_stop_string_cuts_the_text_wherever_tokens_end) {
  struct Case {
    std::string said;
    std::vector<std::string> stops;
    std::string shown;
    std::optional<std::string> match;
  };
  for (const Case& c : std::vector<Case>{{"abc</done>x", {"</done>"}, "abc", "</done>"},
                                         {"a</dog>", {"</done>"}, "a</dog>", {}},
                                         {"aaab", {"aab"}, "a", "aab"},
                                         {"qwfjj", {"jj", "f"}, "qw", "f"},
                                         {"\n\nx", {"\n\n"}, "", "\n\n"},
                                         {"caf\xC3\xA9!", {"\xC3\xA9"}, "caf", "\xC3\xA9"},
                                         {"abc", {"c"}, "ab", "c"},
                                         {"abc", {""}, "abc", {}}}) {
    const Spoken got = spoken(bytes(c.said), c.stops);
    EXPECT_EQ(got.text, c.shown) << c.said;
    EXPECT_EQ(got.match, c.match) << c.said;
    EXPECT_EQ(got.finish, FinishReason::stop) << c.said;
  }
}

TEST(AnswerText, stop_strings_count_behind_the_text_that_they_begin_after) {
  GenerationRequest request;
  request.stop = {"x", "</t>y"};
  request.stops_begin_after = "</t>";
  EXPECT_EQ(spoken(bytes("axb</t>cxd"), request).text, "axb</t>c");
  EXPECT_EQ(spoken(bytes("</t></t>yz"), request).text, "</t>") << "the second mark is text like any other";
  EXPECT_EQ(spoken(bytes("</t>yz"), request).text, "</t>yz");
  EXPECT_EQ(spoken(bytes("axb</t"), request).text, "axb</t") << "nothing is held back for the mark";
  request.include_stop_text = true;
  const Spoken got = spoken(bytes("x</t>abxc"), request);
  EXPECT_EQ(got.text, "x</t>abx");
  EXPECT_EQ(got.match, "x");
}

TEST(AnswerText, a_special_token_has_text_where_it_is_asked_for) {
  GenerationRequest request;
  request.max_tokens = 3;
  request.ignore_eos = true;
  EXPECT_EQ(spoken({'a', kEnd, 'b'}, request).text, "ab");
  request.shown_special_tokens = {kEnd};
  const std::string mark = *testing::byte_tokenizer().token_of(kEnd);
  EXPECT_EQ(spoken({'a', kEnd, 'b'}, request).text, "a" + mark + "b");
  request.stop = {mark};
  EXPECT_EQ(spoken({'a', kEnd, 'b'}, request).text, "a");
}

TEST(AnswerText, held_back_text_is_delivered_when_the_answer_ends_first) {
  EXPECT_EQ(spoken(bytes("ab</do"), {"</done>"}).text, "ab</do");
  const Spoken limited = spoken(bytes("ab</done>"), {"</done>"}, 6);
  EXPECT_EQ(limited.text, "ab</do");
  EXPECT_EQ(limited.finish, FinishReason::length);
  // The match completes with the last allowed token: the stop string is the reason.
  EXPECT_EQ(spoken(bytes("ab</done>"), {"</done>"}, 9).finish, FinishReason::stop);
}

TEST(AnswerText, characters_leave_whole_and_broken_ones_as_replacement) {
  const Spoken whole = spoken(bytes("a\xF0\x9F\x98\xB8z"));
  EXPECT_EQ(whole.pieces, (std::vector<std::string>{"a", "", "", "", "\xF0\x9F\x98\xB8", "z", ""}));
  EXPECT_EQ(spoken(bytes("a\xF0\x9F\x98")).text, "a\xEF\xBF\xBD");
  EXPECT_EQ(spoken(bytes("\xFF"
                         "A"))
                .text,
            "\xEF\xBF\xBD"
            "A");
}

TEST(AnswerText, end_ids_and_ids_past_the_vocabulary_leave_no_text) {
  const Spoken ended = spoken({'h', 'i', kEnd, 'x'});
  EXPECT_EQ(ended.text, "hi");
  EXPECT_EQ(ended.tokens, 2u);
  const Spoken padded = spoken({'h', 259, 'i'});
  EXPECT_EQ(padded.text, "hi");
  EXPECT_EQ(padded.tokens, 3u);
}

// What a whole answer shows with the stop string "b", whose reasoning stands between <t> and </t>.
std::string shown_of(std::string_view said, std::string wait_if) {
  const std::optional<text::Tokenizer> tokenizer = testing::byte_tokenizer();
  GenerationRequest request;
  request.stop = {"b"};
  request.stops_begin_after = "</t>";
  request.stops_wait_if = std::move(wait_if);
  AnswerText answer(tokenizer, request);
  std::string text;
  for (const int id : bytes(said)) {
    const text::StopStrings::Piece piece = answer.add(id);
    text += piece.text;
    if (piece.matched) return text + "|" + *piece.matched;
  }
  const text::StopStrings::Piece rest = answer.finish();
  return text + rest.text + (rest.matched ? "|" + *rest.matched : "");
}

TEST(AnswerText, stop_strings_wait_for_the_end_of_reasoning_where_the_answer_has_some) {
  EXPECT_EQ(shown_of("ab</t>cbd", ""), "ab</t>c|b");
  EXPECT_EQ(shown_of(" <t>ab</t>cbd", "<t>"), " <t>ab</t>c|b");
  EXPECT_EQ(shown_of("<ab</t>cbd", "<t>"), "<a|b") << "it began like reasoning and is none";
  EXPECT_EQ(shown_of("b", "<t>"), "|b");
  EXPECT_EQ(shown_of(" <", "<t>"), " <");
  EXPECT_EQ(shown_of("", "<t>"), "");
}

// What "abab..." shows with the stop string "ab", behind so many tokens.
TEST(AnswerText, stop_strings_do_not_count_before_the_least_number_of_tokens) {
  GenerationRequest request;
  request.stop = {"ab"};
  const auto shown = [&](int min_tokens, std::string_view said) {
    request.min_tokens = min_tokens;
    const Spoken got = spoken(bytes(said), request);
    return got.text + (got.match ? "|" + *got.match : "");
  };
  EXPECT_EQ(shown(0, "abxabxab"), "|ab");
  EXPECT_EQ(shown(1, "abxabxab"), "|ab") << "it ends with the second token";
  EXPECT_EQ(shown(2, "abxabxab"), "abx|ab");
  EXPECT_EQ(shown(4, "abxabxab"), "abx|ab") << "one that began before counts where it ends behind";
  EXPECT_EQ(shown(5, "abxabxab"), "abxabx|ab");
  EXPECT_EQ(shown(8, "abxabxab"), "abxabxab");
  request.stop = {"aa"};
  EXPECT_EQ(shown(2, "aaab"), "a|aa");
  request.stop = {"\xC3\xA9"};
  EXPECT_EQ(shown(2, "\xC3\xA9x\xC3\xA9y"), "\xC3\xA9x|\xC3\xA9");
  EXPECT_EQ(shown(1, "\xC3\xA9x"), "|\xC3\xA9") << "a character is of the token that completes it";
}

TEST(AnswerText, text_that_waited_for_reasoning_is_of_the_tokens_that_made_it) {
  const std::optional<text::Tokenizer> tokenizer = testing::byte_tokenizer();
  GenerationRequest request;
  request.stop = {"<"};
  request.stops_begin_after = "</t>";
  request.stops_wait_if = "<t>";
  request.min_tokens = 1;
  AnswerText answer(tokenizer, request);
  std::string text;
  for (const int id : bytes("<tx")) text += answer.add(id).text;
  EXPECT_EQ(text, "<tx") << "the first token is behind the least number only when its text is looked at";
  EXPECT_EQ(answer.add('<').matched, "<");
}

}  // namespace
}  // namespace godwit::decode
