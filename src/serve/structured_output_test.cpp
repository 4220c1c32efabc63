#include "serve/structured_output.h"

#include "serve/completion_request.h"
#include "support/serve_fixture.h"

namespace godwit::serve {
namespace {

using text::GrammarKind;

struct StructuredOutputTest : ServeFixture {
  std::optional<OutputWish> wish(const std::string& fields, OutputFields of = OutputFields::openai) {
    const Json body = Json::parse("{" + fields + "}");
    return read_structured_output(JsonFields(body), of);
  }
  std::optional<text::GrammarSpec> read(const std::string& fields, OutputFields of = OutputFields::openai) {
    const auto found = wish(fields, of);
    return found ? std::optional(found->spec) : std::nullopt;
  }
  std::string refusal(const std::string& fields, OutputFields of = OutputFields::openai) {
    return refusal_of([&] { read(fields, of); });
  }
  CompletionRequest completion(const std::string& fields) {
    return parse_completion_request(Json::parse(R"({"prompt":"a",)" + fields + "}"), model);
  }
};

TEST_F(StructuredOutputTest, EveryFieldOfEveryApiSaysTheSame) {
  using enum OutputFields;
  const text::GrammarSpec loose{GrammarKind::json_schema, R"({"type":"null"})", false};
  const text::GrammarSpec strict{GrammarKind::json_schema, R"({"type":"null"})", true};
  const text::GrammarSpec object{GrammarKind::json_object, "", false};
  const std::vector<std::tuple<OutputFields, std::string, text::GrammarSpec>> cases = {
      {openai, R"("response_format":{"type":"json_object"})", object},
      {openai, R"("response_format":{"type":"json_object","schema":{"type":"null"}})", loose},
      {openai,
       R"("response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"null"}}})",
       loose},
      {openai,
       R"("response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":{"type":"null"}}})",
       strict},
      {openai, R"("json_schema":{"type":"null"})", loose},
      {openai, R"("guided_json":{"type":"null"})", strict},
      {openai, R"("guided_json":"{\"type\":\"null\"}")", strict},
      {openai, R"("structured_outputs":{"json":{"type":"null"}})", strict},
      {openai, R"("structured_outputs":{"json_object":true,"regex":null})", object},
      {openai, R"("structured_outputs":{"regex":"a+"})", {GrammarKind::regex, "a+", true}},
      {openai, R"("guided_regex":"a+")", {GrammarKind::regex, "a+", true}},
      {openai, R"("guided_choice":["a","ab"])", {GrammarKind::choice, R"(["a","ab"])", true}},
      {openai,
       R"("structured_outputs":{"grammar":"root ::= \"a\""})",
       {GrammarKind::gbnf, "root ::= \"a\"", true}},
      {openai, R"("guided_grammar":"start: \"a\"")", {GrammarKind::lark, "start: \"a\"", true}},
      {openai, R"("grammar":"root ::= \"a\"")", {GrammarKind::gbnf, "root ::= \"a\"", true}},
      {responses,
       R"("text":{"format":{"type":"json_schema","name":"n","schema":{"type":"null"},"strict":true}})",
       strict},
      {responses, R"("text":{"format":{"type":"json_object"}})", object},
      {anthropic, R"("output_config":{"format":{"type":"json_schema","schema":{"type":"null"}}})", strict},
      {anthropic, R"("output_format":{"type":"json_schema","schema":{"type":"null"}})", strict},
      {ollama, R"("format":"json")", object},
      {ollama, R"("format":{"type":"null"})", loose}};
  for (const auto& [of, fields, spec] : cases) {
    const auto found = read(fields, of);
    ASSERT_TRUE(found.has_value()) << fields;
    EXPECT_TRUE(*found == spec) << fields << " gave " << found->text;
  }
}

TEST_F(StructuredOutputTest, WhatAsksForNothingIsNothing) {
  for (const auto* fields : {R"("response_format":{"type":"text"})", R"("response_format":null,"grammar":"")",
                             R"("guided_choice":null,"guided_regex":null)", R"("structured_outputs":{})",
                             R"("structured_outputs":{"json_object":false,"disable_fallback":true})", R"("x":1)"})
    EXPECT_FALSE(read(fields).has_value()) << fields;
  EXPECT_FALSE(
      read(R"("text":{"format":{"type":"text"},"verbosity":"low"})", OutputFields::responses).has_value());
  EXPECT_FALSE(read(R"("format":"")", OutputFields::ollama).has_value());
}

TEST_F(StructuredOutputTest, TwoWishesAndWrongShapesAreRefusedByName) {
  EXPECT_EQ(refusal(R"("response_format":{"type":"json_object"},"guided_regex":"a")"),
            "guided_regex: invalid_value");
  EXPECT_EQ(refusal(R"("structured_outputs":{"regex":"a","choice":["b"]})"),
            "structured_outputs.choice: invalid_value");
  EXPECT_EQ(refusal(R"("response_format":{"type":"xml"})"), "response_format.type: invalid_value");
  EXPECT_EQ(refusal(R"("response_format":{"type":"json_schema"})"),
            "response_format.json_schema: invalid_value");
  EXPECT_EQ(refusal(R"("response_format":{"type":"json_schema","json_schema":{"name":"n"}})"),
            "response_format.json_schema.schema: invalid_value");
  EXPECT_EQ(refusal(R"("response_format":"json")"), "response_format: invalid_value");
  EXPECT_EQ(refusal(R"("guided_choice":[1])"), "guided_choice: invalid_value");
  EXPECT_EQ(refusal(R"("guided_choice":[])"), "guided_choice: invalid_value");
  EXPECT_EQ(refusal(R"("guided_choice":"")"), "guided_choice: invalid_value");
  EXPECT_EQ(refusal(R"("guided_regex":"")"), "guided_regex: invalid_value");
  EXPECT_EQ(refusal(R"("guided_grammar":"")"), "guided_grammar: invalid_value");
  EXPECT_EQ(refusal(R"("structured_outputs":{"choice":[]})"), "structured_outputs.choice: invalid_value");
  EXPECT_EQ(refusal(R"("structured_outputs":{"regex":""})"), "structured_outputs.regex: invalid_value");
  EXPECT_EQ(refusal(R"("response_format":"")"), "response_format: invalid_value");
  EXPECT_EQ(refusal(R"("structured_outputs":{"structural_tag":"x"})"),
            "structured_outputs.structural_tag: unsupported_parameter");
  EXPECT_EQ(refusal(R"("grammar_lazy":true)"), "grammar_lazy: unsupported_parameter");
  EXPECT_EQ(refusal(R"("format":"yaml")", OutputFields::ollama), "format: invalid_value");
}

TEST_F(StructuredOutputTest, AnEmptySchemaIsAnyJson) {
  for (const auto* fields : {R"("guided_json":{})", R"("guided_json":"{}")", R"("structured_outputs":{"json":{}})",
                             R"("json_schema":{})", R"("guided_json":true)"}) {
    const auto filter = completion(fields).plan.common.constraint->start();
    const auto mask = filter->mask();
    for (const char c : std::string("{[\"1tfnx "))
      EXPECT_EQ(mask[static_cast<std::size_t>(c) / 32] >> (c % 32) & 1, c != 'x' && c != ' ') << fields << c;
  }
}

TEST_F(StructuredOutputTest, WhatIsWrongWithAGrammarNamesTheFieldThatWasSent) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("response_format":{"type":"json_schema","json_schema":{"strict":true,"schema":{"not":{}}}})", "response_format"},
      {R"("guided_json":{"not":{}})", "guided_json"},
      {R"("guided_regex":"(?=a)b")", "guided_regex"},
      {R"("guided_choice":)", "guided_choice"},
      {R"("guided_grammar":"start: x")", "guided_grammar"},
      {R"("grammar":"root ::= x")", "grammar"},
      {R"("json_schema":{"$ref":"#"})", "json_schema"},
      {R"("structured_outputs":{"json":{"not":{}}})", "structured_outputs.json"},
      {R"("structured_outputs":{"regex":"("})", "structured_outputs.regex"}};
  for (auto [fields, param] : cases) {
    std::string text = fields;
    if (text.ends_with(':')) text += Json(std::vector<std::string>(8193, "a")).dump();
    EXPECT_EQ(refusal_of([&] { completion(text); }), std::string(param) + ": invalid_value") << fields;
  }
  using enum OutputFields;
  EXPECT_EQ(wish(R"("text":{"format":{"type":"json_object"}})", responses)->param, "text.format");
  EXPECT_EQ(wish(R"("output_config":{"format":{"type":"json_object"}})", anthropic)->param, "output_config.format");
  EXPECT_EQ(wish(R"("output_format":{"type":"json_object"})", anthropic)->param, "output_format");
  EXPECT_EQ(wish(R"("format":"json")", ollama)->param, "format");
}

TEST_F(StructuredOutputTest, TextsAmongTokensHaveALimit) {
  const std::string fits(1024, 'a'), long_text(1025, 'a');
  EXPECT_EQ(completion(R"("bad_words":[")" + fits + "\"]").plan.common.sampling.bad_words.size(), 2u);
  EXPECT_EQ(completion(R"("stop":")" + fits + "\"").plan.common.stop, std::vector{fits});
  Json texts = Json::array();
  for (int i = 0; i < 257; ++i) texts.push_back({"a", 1});
  Json breakers = Json(std::vector<std::string>(65, "a"));
  const std::pair<std::string, const char*> refused[] = {
      {R"("bad_words":[")" + long_text + "\"]", "bad_words"},
      {R"("bad_words":)" + Json(std::vector<std::string>(257, "a")).dump(), "bad_words"},
      {R"("stop":")" + long_text + "\"", "stop"},
      {R"("stop":["b",")" + long_text + "\"]", "stop"},
      {R"("logit_bias":[[")" + long_text + "\",1]]", "logit_bias"},
      {R"("logit_bias":)" + texts.dump(), "logit_bias"},
      {R"("dry_sequence_breakers":)" + breakers.dump(), "dry_sequence_breakers"}};
  for (const auto& [fields, param] : refused)
    EXPECT_EQ(refusal_of([&] { completion(fields); }), std::string(param) + ": invalid_value") << param;
  texts.erase(0);
  EXPECT_EQ(completion(R"("logit_bias":)" + texts.dump()).plan.common.sampling.logit_bias.size(), 1u);
}

TEST_F(StructuredOutputTest, ACompletionIsConstrainedOrRefusedBeforeItBegins) {
  const auto request = completion(R"("guided_choice":["yes","no"])");
  ASSERT_NE(request.plan.common.constraint, nullptr);
  const auto filter = request.plan.common.constraint->start();
  const auto mask = filter->mask();
  for (int id = 0; id < 258; ++id)
    EXPECT_EQ(mask[static_cast<std::size_t>(id) / 32] >> (id % 32) & 1, id == 'y' || id == 'n') << id;
  EXPECT_EQ(completion(R"("n":1)").plan.common.constraint, nullptr);
  for (const auto* fields :
       {R"("guided_regex":"(?=a)b")", R"("grammar":"root ::= x")",
        R"("response_format":{"type":"json_schema","json_schema":{"strict":true,"schema":{"not":{}}}})"})
    EXPECT_NE(refusal_of([&] { completion(fields); }), "") << fields;
  try {
    completion(R"("grammar":"root ::= \"a\"\nx ::= (")");
    FAIL();
  } catch (const RequestError& e) {
    EXPECT_NE(e.message().find("line 2, column 8"), std::string::npos) << e.message();
  }
}

TEST_F(StructuredOutputTest, TheRarerSamplersAreReadByTheirNames) {
  const auto sampling =
      completion(R"("typ_p":0.9,"top_n_sigma":1.5,"dynatemp_range":0.5,"dynatemp_exponent":2,
    "dry_multiplier":0.8,"dry_base":1.5,"dry_allowed_length":3,"dry_penalty_last_n":64,"mirostat":2,"mirostat_tau":4,
    "mirostat_eta":0.2,"bad_words":["ab"],"allowed_token_ids":[97,98],"samplers":["top_k","temperature"],
    "logit_bias":[["ab",2],[99,false]])")
          .plan.common.sampling;
  EXPECT_EQ(sampling.typical_p, 0.9);
  EXPECT_EQ(sampling.top_n_sigma, 1.5);
  EXPECT_EQ(sampling.dynatemp_range, 0.5);
  EXPECT_EQ(sampling.dynatemp_exponent, 2);
  EXPECT_EQ(sampling.dry_multiplier, 0.8);
  EXPECT_EQ(sampling.dry_base, 1.5);
  EXPECT_EQ(sampling.dry_allowed_length, 3);
  EXPECT_EQ(sampling.dry_window, 64);
  EXPECT_EQ(sampling.dry_breakers, (std::vector<int>{'\n', '"', '*', ':'}));
  EXPECT_EQ(sampling.mirostat, 2);
  EXPECT_EQ(sampling.mirostat_tau, 4);
  EXPECT_EQ(sampling.mirostat_eta, 0.2);
  EXPECT_EQ(sampling.bad_words, (std::vector<std::vector<int>>{{'a', 'b'}, {' ', 'a', 'b'}}));
  EXPECT_EQ(sampling.allowed_ids, (std::vector<int>{97, 98}));
  EXPECT_EQ(sampling.order,
            (decode::SamplerOrder{decode::SamplerStage::top_k, decode::SamplerStage::temperature}));
  EXPECT_EQ(sampling.logit_bias.at('a'), 2);
  EXPECT_EQ(sampling.logit_bias.at('b'), 2);
  EXPECT_EQ(sampling.logit_bias.at(99), decode::SamplingParams::kBan);
  EXPECT_EQ(completion(R"("sampler_order":"vllm")").plan.common.sampling.order,
            decode::sampler_preset("vllm"));
  EXPECT_EQ(completion(R"("samplers":"kpt")").plan.common.sampling.order,
            decode::sampler_order_of_letters("kpt"));
  const std::pair<const char*, const char*> refused[] = {
      {R"("samplers":["top_q"])", "samplers"},
      {R"("sampler_order":7)", "sampler_order"},
      {R"("allowed_token_ids":[258])", "allowed_token_ids"},
      {R"("allowed_token_ids":[])", "allowed_token_ids"},
      {R"("bad_words":[""])", "bad_words"},
      {R"("mirostat":3)", "mirostat"},
      {R"("typical_p":2)", "typical_p"}};
  for (const auto& [fields, param] : refused)
    EXPECT_EQ(refusal_of([&] { completion(fields); }), std::string(param) + ": invalid_value") << fields;
}

}  // namespace
}  // namespace godwit::serve
