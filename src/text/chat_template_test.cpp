#include "text/chat_template.h"

#include <gtest/gtest.h>

#include <atomic>
#include <ctime>
#include <thread>

#include "base/error.h"

namespace godwit::text {
namespace {

std::string render(const std::string& source, Json extra = Json::object()) {
  return ChatTemplate(source, Json::object(), "t", [] { return 0; }).render({.extra = std::move(extra)});
}

std::string failure_of(const std::string& source, ErrorCode code, Json extra = Json::object()) {
  try {
    const std::string text = render(source, std::move(extra));
    ADD_FAILURE() << "rendered " << text.substr(0, 200);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    return e.what();
  }
  return {};
}

TEST(ChatTemplate, ToJsonKeepsOrderSpacesAndNumberKinds) {
  const Json schema = parse_json(
      R"({"name":"cmp","description":"a < b & c > d — it's \"q\" / é","parameters":{"type":"object",)"
      R"("properties":{"z":{"type":"number"},"a":{"type":"array","items":[1,2.0,true,null]}}}})",
      "schema");
  EXPECT_EQ(
      render("{{ s|tojson }}", {{"s", schema}}),
      R"({"name": "cmp", "description": "a < b & c > d — it's \"q\" / é", "parameters": {"type": "object", )"
      R"("properties": {"z": {"type": "number"}, "a": {"type": "array", "items": [1, 2.0, true, null]}}}})");
}

TEST(ChatTemplate, RaiseExceptionIsAnErrorWithItsMessageAndLine) {
  const std::string what =
      failure_of("a\nb\n{{ raise_exception('roles must alternate') }}", ErrorCode::invalid_argument);
  EXPECT_NE(what.find("roles must alternate"), std::string::npos) << what;
  EXPECT_NE(what.find("line 3"), std::string::npos) << what;
}

TEST(ChatTemplate, ATemplateThatDoesNotParseIsCorruptAndNamesItsLine) {
  const std::string what = failure_of("a\n{% if %}", ErrorCode::corrupt_file);
  EXPECT_NE(what.find("line 2"), std::string::npos) << what;
  failure_of("{% for x in y %}", ErrorCode::corrupt_file);
  failure_of("{{ 'open }}", ErrorCode::corrupt_file);
  failure_of("{{ " + std::string(100'000, '(') + " }}", ErrorCode::corrupt_file);
}

TEST(ChatTemplate, TheClockIsTheOneThatWasGiven) {
  const ChatTemplate chat_template("{{ strftime_now('%Y') }}", {}, "t", [] { return 1'000'000'000; });
  EXPECT_EQ(chat_template.render({}), "2001");
}

TEST(ChatTemplate, SpecialTokensAreVariablesAndExtrasOverrideThem) {
  const ChatTemplate chat_template("{{ bos_token }}{{ eos_token }}",
                                   {{"bos_token", "<s>"}, {"eos_token", "</s>"}}, "t");
  EXPECT_EQ(chat_template.render({}), "<s></s>");
  EXPECT_EQ(chat_template.render({.extra = {{"eos_token", "!"}}}), "<s>!");
}

TEST(ChatTemplate, ReasoningIsFoundUnderEveryNameInUse) {
  const ChatTemplate chat_template("{{ messages[0].thinking }}/{{ messages[0].reasoning_content }}", {}, "t");
  for (const char* name : {"reasoning_content", "thinking", "reasoning"}) {
    const Json messages = {{{"role", "assistant"}, {"content", "x"}, {name, "hm"}}};
    EXPECT_EQ(chat_template.render({.messages = messages}), "hm/hm") << name;
  }
}

// Each would run for hours or take all memory; none may take more than a few seconds.
TEST(ChatTemplate, HostileTemplatesEndWithAnError) {
  const std::vector<std::string> hostile = {
      "{% for i in range(99999) %}{% for j in range(99999) %}{{ j }}{% endfor %}{% endfor %}",
      "{% for i in range(99999) %}{% for j in range(99999) %}{% set x = i * j %}{% endfor %}{% endfor %}",
      "{% set ns = namespace(s='ab') %}{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}{% endfor %}{{ "
      "ns.s }}",
      "{% set ns = namespace(s='ab') %}{% for i in range(60) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}{{ "
      "ns.s }}",
      "{% set ns = namespace(s=[1]) %}{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}{% endfor %}{{ "
      "ns.s }}",
      "{{ 'a' * 100000000000 }}",
      "{{ [1] * 100000000000 }}",
      "{{ 'x'.center(10000000000) }}",
      "{{ '%1000000000d' % 1 }}",
      "{{ 'ab'.replace('', 'x' * 1000000).replace('', 'y' * 1000000) }}",
      "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
      "{{ 10 ** 10 ** 10 }}",
  };
  for (const std::string& source : hostile) {
    const std::clock_t start = std::clock();  // processor time: others may be busy on this machine
    failure_of(source, ErrorCode::invalid_argument);
    EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 30) << source;
  }
}

// Each link of a chain is a level of recursion for whatever walks the syntax tree.
TEST(ChatTemplate, LongChainsDoNotOverflowTheStack) {
  const auto chain = [](const std::string& start, const std::string& link, int count,
                        const std::string& end) {
    std::string text = start;
    for (int i = 0; i < count; ++i) text += link;
    return text + end;
  };
  struct Case {
    const char *start, *link, *end;
  };
  const std::vector<Case> cases = {
      {"{{ ", "not ", "1 }}"},         {"{{ ", "-", "1 }}"},
      {"{{ ", "1+", "1 }}"},           {"{{ ", "x and ", "1 }}"},
      {"{{ ", "1 if 0 else ", "1 }}"}, {"{{ ", "1 ** ", "1 }}"},
      {"{{ x", ".a", " }}"},           {"{{ x", "[1]", " }}"},
      {"{{ x", "()", " }}"},           {"{{ 1", "|string", " }}"},
      {"{{ x", " is true", " }}"},     {"{% if 0 %}", "{% elif 0 %}", "{% endif %}"}};
  for (const Case& c : cases) {
    failure_of(chain(c.start, c.link, 200'000, c.end), ErrorCode::corrupt_file);
    const std::string allowed = chain(c.start, c.link, 1'300, c.end);  // far past templates in use: compiles
    EXPECT_NO_THROW(ChatTemplate(allowed, Json::object(), "chain")) << c.link;
  }
  EXPECT_EQ(ChatTemplate(chain("{{ ", "1+", 4'000, "1 }}"), Json::object(), "chain").render({}), "4001");
}

TEST(ChatTemplate, TheSmallestIntegerDividedByMinusOneIsAnErrorAndNothingIsPrinted) {
  testing::internal::CaptureStderr();
  const std::string what =
      failure_of("{{ (-170141183460469231731687303715884105727 - 1) // -1 }}", ErrorCode::invalid_argument);
  EXPECT_NE(what.find("integer out of range"), std::string::npos) << what;
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(ChatTemplate, ValuesNestedByATemplateDoNotOverflowTheStack) {
  const std::string nest =
      "{% set ns = namespace(x=[]) %}{% for i in range(90000) %}{% set ns.x = [ns.x] %}{% endfor %}";
  failure_of(nest, ErrorCode::invalid_argument);
  const std::string start = "{% set ns = namespace(x=1) %}{% for i in range(90000) %}", end = "{% endfor %}";
  for (const char* step :
       {"{% set ns.x = (ns.x, 1) %}", "{% set ns.x = {'a': ns.x} %}", "{% set ns.x = dict(a=ns.x) %}",
        "{% set ns.x = namespace(x=ns.x) %}", "{% set ns.x = [ns.x]|batch(1)|list %}",
        "{% set n = namespace() %}{% set n.x = ns.x %}{% set ns.x = n %}"})
    failure_of(start + step + end, ErrorCode::invalid_argument);
  failure_of("{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}", ErrorCode::invalid_argument);
}

TEST(ChatTemplate, OneTemplateRendersOnManyThreads) {
  const ChatTemplate chat_template("{% for m in messages %}{{ m.content|upper }}{% endfor %}", {}, "t");
  const Json messages = {{{"role", "user"}, {"content", "abc"}}};
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) right += chat_template.render({.messages = messages}) == "ABC";
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 200);
}

}  // namespace
}  // namespace godwit::text
