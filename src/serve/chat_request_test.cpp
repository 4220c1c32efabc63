#include "serve/chat_request.h"

#include "support/serve_fixture.h"

namespace godwit::serve {
namespace {

struct ChatRequestTest : ServeFixture {
  ChatRequest parse(const std::string& fields) {
    return parse_chat_request(parse_body(R"({"messages":[{"role":"user","content":"hi"}])" + fields + "}"), model);
  }
  std::string refusal(const std::string& fields) {
    return refusal_of([&] { parse(fields); });
  }
  std::string prompt_of(const std::string& messages) {
    const ChatRequest chat = parse_chat_request(parse_body("{\"messages\":" + messages + "}"), model);
    return tokenizer.decode(render_turn(chat.turn, model), /*skip_special_tokens=*/false);
  }
  std::string message_refusal(const std::string& messages) {
    return refusal_of([&] { prompt_of(messages); });
  }
};

TEST_F(ChatRequestTest, DefaultsAreTheModelsOwnAndTheRestOfTheContext) {
  model.sampling.temperature = 0.3;
  const ChatRequest chat = parse("");
  EXPECT_EQ(chat.turn.common.sampling.temperature, 0.3);
  EXPECT_EQ(chat.turn.common.max_tokens, -1);
  EXPECT_EQ(chat.turn.choices, 1);
  EXPECT_FALSE(chat.stream);
  EXPECT_EQ(render_turn(chat.turn, model).front(), kImStart);
}

// Null is "absent" for every optional field, known or not.
TEST_F(ChatRequestTest, EveryOptionalFieldMayBeNull) {
  for (const auto* name : {"model",
                           "max_tokens",
                           "max_completion_tokens",
                           "temperature",
                           "top_p",
                           "top_k",
                           "min_p",
                           "n",
                           "stop",
                           "seed",
                           "logit_bias",
                           "frequency_penalty",
                           "presence_penalty",
                           "repetition_penalty",
                           "logprobs",
                           "top_logprobs",
                           "stream",
                           "stream_options",
                           "tools",
                           "tool_choice",
                           "functions",
                           "response_format",
                           "modalities",
                           "audio",
                           "reasoning_effort",
                           "chat_template_kwargs",
                           "add_generation_prompt",
                           "ignore_eos",
                           "adapter",
                           "user",
                           "zzz"})
    EXPECT_EQ(refusal(fmt::format(",\"{}\":null", name)), "") << name;
}

TEST_F(ChatRequestTest, FieldsOutOfTypeOrRangeAreRefusedByName) {
  const std::vector<std::pair<std::string, std::string>> table = {
      {"max_tokens", "\"16\""},
      {"max_tokens", "-1"},
      {"max_tokens", "0"},
      {"max_tokens", "1.5"},
      {"max_tokens", "-1e30"},
      {"priority", "0.5"},
      {"max_completion_tokens", "0"},
      {"temperature", "-1"},
      {"temperature", "\"NaN\""},
      {"temperature", "true"},
      {"top_p", "1.5"},
      {"top_p", "-0.1"},
      {"top_k", "-2"},
      {"min_p", "2"},
      {"n", "0"},
      {"n", "129"},
      {"n", "17"},
      {"seed", "\"7\""},
      {"seed", "1.5"},
      {"stop", "5"},
      {"stop", "[1]"},
      {"stream", "1"},
      {"stream", "\"true\""},
      {"stream_options", "true"},
      {"logprobs", "\"yes\""},
      {"logprobs", "21"},
      {"top_logprobs", "21"},
      {"top_logprobs", "-1"},
      {"top_logprobs", "2"},
      {"logit_bias", "3"},
      {"logit_bias", R"({"258": 1})"},
      {"logit_bias", R"({"-1": 1})"},
      {"logit_bias", R"({"a": 1})"},
      {"logit_bias", R"({"5": 101})"},
      {"logit_bias", R"({"5": "x"})"},
      {"logit_bias", "[[5]]"},
      {"presence_penalty", "2.5"},
      {"frequency_penalty", "-3"},
      {"repetition_penalty", "0"},
      {"reasoning_effort", "\"huge\""},
      {"chat_template_kwargs", "[]"},
      {"chat_template_kwargs", R"({"tools": 1})"},
  };
  for (const auto& [field, value] : table)
    EXPECT_EQ(refusal(fmt::format(",\"{}\":{}", field, value)), field + ": invalid_value")
        << field << " " << value;
  std::string many = "[";
  for (int i = 0; i < 17; ++i) many += fmt::format("{}\"s{}\"", i ? "," : "", i);
  EXPECT_EQ(refusal(",\"stop\":" + many + "]"), "stop: invalid_value");
}

TEST_F(ChatRequestTest, LooseSpellingsThatMeanSomethingAreTaken) {
  EXPECT_EQ(parse(",\"max_tokens\":16.0").turn.common.max_tokens, 16);
  EXPECT_EQ(parse(",\"max_tokens\":99,\"max_completion_tokens\":5").turn.common.max_tokens, 5);
  EXPECT_EQ(parse(",\"max_tokens\":4611686018427387904").turn.common.max_tokens,
            std::numeric_limits<int>::max());
  EXPECT_EQ(parse(",\"max_tokens\":1e30").turn.common.max_tokens, std::numeric_limits<int>::max());
  EXPECT_EQ(parse(",\"max_tokens\":18446744073709551615").turn.common.max_tokens, std::numeric_limits<int>::max());
  EXPECT_EQ(parse(",\"priority\":-9e20").turn.common.priority, std::numeric_limits<int>::min());
  EXPECT_EQ(parse(",\"priority\":2147483648").turn.common.priority, std::numeric_limits<int>::max());
  EXPECT_EQ(parse(",\"top_k\":1e12").turn.common.sampling.top_k, std::numeric_limits<int>::max());
  EXPECT_EQ(parse(",\"temperature\":2.5").turn.common.sampling.temperature, 2.5);
  EXPECT_TRUE(parse(",\"stop\":\"\"").turn.common.stop.empty());
  EXPECT_TRUE(parse(",\"stop\":[]").turn.common.stop.empty());
  EXPECT_EQ(parse(",\"stop\":[\"\",\"x\"]").turn.common.stop, std::vector<std::string>{"x"});
  EXPECT_EQ(parse(",\"top_k\":-1").turn.common.sampling.top_k, 0);
  const double tiny = parse(",\"top_p\":0").turn.common.sampling.top_p;
  EXPECT_TRUE(tiny > 0 && tiny < 1e-6) << tiny;
  EXPECT_EQ(parse(",\"repeat_penalty\":1.5").turn.common.sampling.repetition_penalty, 1.5);
  const auto bias = parse(R"(,"logit_bias":{"5":-100,"6":false})").turn.common.sampling.logit_bias;
  EXPECT_EQ(bias.at(5), -100);
  EXPECT_EQ(bias.at(6), decode::SamplingParams::kBan);
  EXPECT_EQ(parse(R"(,"logit_bias":[[7,2.5]])").turn.common.sampling.logit_bias.at(7), 2.5f);
}

TEST_F(ChatRequestTest, EverySixtyFourBitNumberIsASeedAndMinusOneAsksForARandomOne) {
  const auto seed = [&](const auto* text) {
    return parse(fmt::format(",\"seed\":{}", text)).turn.common.sampling.seed;
  };
  EXPECT_EQ(seed("0"), 0u);
  EXPECT_EQ(seed("42"), 42u);
  EXPECT_EQ(seed("9223372036854775808"), 9223372036854775808u);
  EXPECT_EQ(seed("-2"), static_cast<std::uint64_t>(-2));
  EXPECT_EQ(seed("-1"), std::nullopt);
}

TEST_F(ChatRequestTest, LogprobsComeInThreeSpellings) {
  const auto both = [&](const std::string& fields) {
    const auto request = parse(fields).turn.common;
    return std::pair(request.logprobs, request.top_logprobs);
  };
  EXPECT_EQ(both(",\"logprobs\":true"), std::pair(true, 0));
  EXPECT_EQ(both(",\"logprobs\":true,\"top_logprobs\":20"), std::pair(true, 20));
  EXPECT_EQ(both(",\"logprobs\":3"), std::pair(true, 3));
  EXPECT_EQ(both(",\"logprobs\":false,\"top_logprobs\":0"), std::pair(false, 0));
}

TEST_F(ChatRequestTest, FieldsThatWouldChangeTheAnswerAreRefusedUnlessTheyAskForNothing) {
  const std::vector<std::pair<std::string, std::string>> refused = {
      {"modalities", R"(["text","audio"])"},
      {"audio", R"({"voice":"alloy"})"},
      {"adapter", "\"a\""},
      {"lora", "\"a\""},
      {"skip_special_tokens", "false"}};
  for (const auto& [field, value] : refused)
    EXPECT_EQ(refusal(fmt::format(",\"{}\":{}", field, value)), field + ": unsupported_parameter") << value;
  for (const auto* fine :
       {"\"tools\":[]", "\"tool_choice\":\"none\"", "\"tool_choice\":\"auto\"", "\"min_tokens\":0",
        "\"response_format\":{\"type\":\"text\"}", "\"modalities\":[\"text\"]", "\"typical_p\":1.0",
        "\"mirostat\":0", "\"parallel_tool_calls\":true", "\"store\":true", "\"user\":\"u\"",
        "\"metadata\":{\"a\":\"b\"}", "\"service_tier\":\"auto\"", "\"zzz_unknown\":1"})
    EXPECT_EQ(refusal(std::string(",") + fine), "") << fine;
}

TEST_F(ChatRequestTest, TheModelMayBeNamedByIdAliasOrPlaceholder) {
  for (const auto* name : {"", "org/tiny", "tiny", "default", "gpt-4o", "claude-3"})
    EXPECT_EQ(models.open(name, [] {})->model.id, "org/tiny") << name;
  EXPECT_EQ(refusal_of([&] { models.open("other", [] {}); }), "model: model_not_found");
  EXPECT_EQ(refusal_of([&] { model_name(Json{{"model", 7}}); }), "model: invalid_value");
  EXPECT_EQ(model_name(Json{{"model", nullptr}}), "");
}

TEST_F(ChatRequestTest, ContentMayBeTextPartsOrNull) {
  const std::string want = "<|im_start|>user\nab<|im_end|>\n<|im_start|>assistant\n";
  EXPECT_EQ(prompt_of(R"([{"role":"user","content":"ab"}])"), want);
  EXPECT_EQ(
      prompt_of(R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}])"),
      want);
  EXPECT_EQ(prompt_of(R"([{"role":"user","content":"ab"},{"role":"assistant","content":null},{"role":"user","content":"c"}])"),
            "<|im_start|>user\nab<|im_end|>\n<|im_start|>assistant\n<|im_end|>\n<|im_start|>user\nc<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(message_refusal(R"([{"role":"user"}])"), "messages[0].content: invalid_value");
  EXPECT_EQ(message_refusal(R"([{"role":"user","content":3}])"), "messages[0].content: invalid_value");
  EXPECT_EQ(message_refusal(R"([{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}])"),
            "messages[0].content[0]: unsupported_parameter");
}

TEST_F(ChatRequestTest, MessagesThatAreNoneAreRefusedByPlace) {
  EXPECT_EQ(refusal_of([&] { parse_chat_request(Json::object(), model); }), "messages: invalid_value");
  EXPECT_EQ(message_refusal("[]"), "messages: invalid_value");
  EXPECT_EQ(message_refusal("\"hi\""), "messages: invalid_value");
  EXPECT_EQ(message_refusal(R"(["hi"])"), "messages[0]: invalid_value");
  EXPECT_EQ(message_refusal(R"([{"content":"x"}])"), "messages[0].role: invalid_value");
  EXPECT_EQ(message_refusal(R"([{"role":"user","content":"x"},{"role":"banana","content":"x"}])"),
            "messages[1].role: invalid_value");
}

// The developer role is the system role, unless the template has a form of its own for it; the text is never
// lost.
TEST_F(ChatRequestTest, DeveloperBecomesSystemUnlessTheTemplateNamesIt) {
  const std::string messages = R"([{"role":"developer","content":"obey"},{"role":"user","content":"hi"}])";
  EXPECT_NE(prompt_of(messages).find("<|im_start|>system\nobey<|im_end|>"), std::string::npos);
  chat_template = text::ChatTemplate(std::string(kChatMl) + "{# developer #}", Json::object(), "template");
  model.template_traits.knows_developer = true;
  EXPECT_NE(prompt_of(messages).find("<|im_start|>developer\nobey<|im_end|>"), std::string::npos);
}

TEST_F(ChatRequestTest, ATemplateThatRaisesIsAnInvalidRequestWithItsMessage) {
  chat_template =
      text::ChatTemplate("{{ raise_exception('roles must alternate') }}", Json::object(), "template");
  try {
    render_turn(parse("").turn, model);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::invalid_argument);
    EXPECT_NE(std::string_view(e.what()).find("roles must alternate"), std::string_view::npos);
  }
}

TEST_F(ChatRequestTest, ToolCallArgumentsReachTheTemplateAsObjects) {
  chat_template =
      text::ChatTemplate("{{ messages[0].tool_calls[0].function.arguments.x }}", Json::object(), "template");
  EXPECT_EQ(prompt_of(R"([{"role":"assistant","tool_calls":[{"type":"function","id":"1","function":)"
                      R"({"name":"f","arguments":"{\"x\": 42}"}}]}])"),
            "42");
}

TEST_F(ChatRequestTest, TemplateVariablesComeFromTheRequest) {
  chat_template = text::ChatTemplate(
      "{{ enable_thinking }}/{{ reasoning_effort }}/{{ add_generation_prompt }}", Json::object(), "template");
  const auto rendered = [&](const std::string& fields) {
    return tokenizer.decode(render_turn(parse(fields).turn, model));
  };
  EXPECT_EQ(rendered(R"(,"chat_template_kwargs":{"enable_thinking":true},"reasoning_effort":"low")"),
            "True/low/True");
  EXPECT_EQ(rendered(R"(,"reasoning_effort":"none","add_generation_prompt":false)"), "False//False");
}

TEST_F(ChatRequestTest, APromptThatFillsTheContextIsRefusedWithBothNumbers) {
  const auto tokens = static_cast<int>(render_turn(parse("").turn, model).size());
  model.context_length = tokens;
  try {
    plan_turn(parse(",\"max_tokens\":1").turn, model);
    FAIL();
  } catch (const RequestError& e) {
    EXPECT_EQ(e.fields().code, "context_length_exceeded");
    EXPECT_NE(e.message().find("maximum context length"), std::string::npos);
    EXPECT_NE(e.message().find(fmt::format("has {} tokens", tokens)), std::string::npos);
    EXPECT_EQ(e.fields().extra["n_ctx"], tokens);
  }
  model.context_length = tokens + 1;
  EXPECT_EQ(refusal_of([&] { plan_turn(parse(",\"max_tokens\":1000").turn, model); }), "") << "a limit past the context is clamped, not refused";
}

}  // namespace
}  // namespace godwit::serve
