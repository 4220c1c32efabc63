#include "cli/bench_grammar.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <string>
#include <vector>

#include "base/error.h"
#include "models/bundle_text.h"
#include "models/opening.h"
#include "text/grammar_cache.h"

namespace godwit::cli {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// A grammar, and a text that it takes: masks are measured along its tokens.
struct Sample {
  std::string name;
  text::GrammarSpec spec;
  std::string text;
};

constexpr std::string_view kPerson =
    R"({"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"},
 "email":{"type":"string","format":"email"},"tags":{"type":"array","items":{"type":"string"}},
 "address":{"type":"object","properties":{"street":{"type":"string"},"city":{"type":"string","maxLength":40}},
 "required":["street","city"],"additionalProperties":false}},
 "required":["name","age","email","tags","address"],"additionalProperties":false})";
constexpr std::string_view kTree =
    R"({"$defs":{"node":{"type":"object","properties":{"value":{"type":"number"},
 "kind":{"enum":["leaf","inner","root"]},"children":{"type":"array","items":{"$ref":"#/$defs/node"}}},
 "required":["value","kind","children"],"additionalProperties":false}},"$ref":"#/$defs/node"})";
constexpr std::string_view kList = "root ::= item+\nitem ::= \"- \" [^\\n]+ \"\\n\"\n";
constexpr std::string_view kNested =
    "root ::= value\nvalue ::= object | string | number\nobject ::= \"{\" (pair (\",\" pair)*)? \"}\"\n"
    "pair ::= string \":\" value\nstring ::= \"\\\"\" [^\"\\\\]* \"\\\"\"\nnumber ::= [0-9]+\n";
constexpr std::string_view kProse =
    "The quick brown fox jumps over the lazy dog; \xC3\xBC"
    "berall in Stra\xC3\x9F"
    "burg \xE6\x97\xA5\xE6\x9C\xAC\xE8\xAA\x9E \xF0\x9F\x8C\x8D!";

std::vector<Sample> samples() {
  using enum text::GrammarKind;
  const std::string prose(kProse);
  const std::string person = R"({"name":"Ada Lovelace","age":36,"email":"ada@example.org","tags":["math",")" +
                             prose + R"("],"address":{"street":"12 St James's Square","city":"London"}})";
  return {
      {"schema: person", {json_schema, std::string(kPerson), true}, person},
      {"schema: tree",
       {json_schema, std::string(kTree), true},
       R"({"value":1.5,"kind":"root","children":[{"value":-2,"kind":"leaf","children":[]},{"value":3e5,"kind":"inner","children":[]}]})"},
      {"any object",
       {json_object, "", true},
       R"({"a":[1,2.5,null,true,{"b":")" + prose + R"("}],"c":{"d":"e\n"}})"},
      {"regex",
       {regex, R"((\+\d{1,3} )?\(\d{3}\) \d{3}-\d{4}( ext\. \w{1,5})?)", true},
       "+1 (555) 123-4567 ext. 89a"},
      {"choice", {choice, R"(["positive","negative","neutral","mixed"])", true}, "neutral"},
      {"gbnf: list", {gbnf, std::string(kList), true}, "- " + prose + "\n- second item\n"},
      {"gbnf: nested", {gbnf, std::string(kNested), true}, R"({"a":{"b":"some text","c":12},"d":"e"})"}};
}

struct Times {
  std::vector<double> masks;  // seconds
  double first = 0, again = 0;
};

Json report_of(const std::string& name, Times times) {
  std::sort(times.masks.begin(), times.masks.end());
  const double sum = std::accumulate(times.masks.begin(), times.masks.end(), 0.0);
  const auto count = times.masks.size();
  return {{"grammar", name},
          {"compile_us", times.first * 1e6},
          {"again_us", times.again * 1e6},
          {"masks", count},
          {"mean_us", sum / double(count) * 1e6},
          {"p99_us", times.masks[std::min(count - 1, count * 99 / 100)] * 1e6},
          {"max_us", times.masks.back() * 1e6}};
}

Times measure(const Sample& sample, text::GrammarCache& cache, const text::Tokenizer& tokenizer) {
  Times times;
  auto begin = Clock::now();
  auto grammar = cache.compile(sample.spec);
  times.first = seconds_since(begin);
  begin = Clock::now();
  grammar = cache.compile(sample.spec);
  text::GrammarMatcher matcher(grammar);
  times.again = seconds_since(begin);
  std::vector<std::uint32_t> words(grammar->vocabulary().mask_words());
  for (const int id : tokenizer.encode(sample.text, {.add_special_tokens = false})) {
    begin = Clock::now();
    matcher.mask(words);
    times.masks.push_back(seconds_since(begin));
    matcher.accept(id);
  }
  if (!matcher.is_complete()) fail(ErrorCode::internal, "bench", "{}: the text is not whole", sample.name);
  return times;
}

}  // namespace

Json bench_grammar(const models::ModelOptions& model, const Log&) {
  const models::Opening opening = models::prepare(model.path, models::Catalogue::builtin());
  const models::BundleText text = models::load_text(opening.checkpoint, model);
  if (!text.tokenizer) fail(ErrorCode::unsupported, "bench", "the model has no tokenizer");
  text::GrammarCache cache([&] {
    return text::GrammarVocabulary(*text.tokenizer, text.end_ids, text.tokenizer->vocabulary_size());
  });
  const auto begin = Clock::now();
  const std::size_t size = cache.vocabulary()->size();
  Json report = {{"model", model.id},
                 {"vocabulary", size},
                 {"build_s", seconds_since(begin)},
                 {"grammars", Json::array()}};
  Times all;
  for (const Sample& sample : samples()) {
    const Times times = measure(sample, cache, *text.tokenizer);
    all.masks.insert(all.masks.end(), times.masks.begin(), times.masks.end());
    all.first += times.first;
    all.again += times.again;
    report["grammars"].push_back(report_of(sample.name, times));
  }
  report["grammars"].push_back(report_of("all", all));
  return report;
}

}  // namespace godwit::cli
