// T-1.11: whatever a field holds, a request is answered or refused; it is never our fault. T-1.2: null is
// absent.
#include <random>

#include "support/dispatch_fixture.h"

namespace godwit::serve {
namespace {

constexpr unsigned kSeed = 20261201;

const std::vector<const char*> kValues = {"true",
                                          "false",
                                          "0",
                                          "1",
                                          "-1",
                                          "2.5",
                                          "1e18",
                                          "-1e18",
                                          "9223372036854775808",
                                          "18446744073709551615",
                                          "1e308",
                                          "\"\"",
                                          "\"x\"",
                                          "\"required\"",
                                          "\"auto\"",
                                          "\"\\ud83d\\ude38\"",
                                          "[]",
                                          "{}",
                                          "[null]",
                                          "[[]]",
                                          "[{}]",
                                          "[1,\"a\",{}]",
                                          "{\"a\":1}",
                                          "{\"type\":\"function\"}",
                                          "{\"type\":5}",
                                          "{\"type\":\"json_schema\"}",
                                          "[{\"type\":\"function\"}]",
                                          "[{\"role\":\"user\"}]",
                                          "[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]",
                                          "[{\"type\":\"message\",\"content\":[{}]}]",
                                          "{\"format\":{\"type\":\"json_object\"}}",
                                          "[{\"type\":\"reasoning\",\"summary\":[5]}]"};

const std::vector<const char*> kFields = {"model",
                                          "messages",
                                          "prompt",
                                          "input",
                                          "max_tokens",
                                          "max_completion_tokens",
                                          "max_output_tokens",
                                          "temperature",
                                          "top_p",
                                          "top_k",
                                          "min_p",
                                          "typical_p",
                                          "repetition_penalty",
                                          "repeat_last_n",
                                          "presence_penalty",
                                          "frequency_penalty",
                                          "n",
                                          "best_of",
                                          "stop",
                                          "seed",
                                          "logit_bias",
                                          "logprobs",
                                          "top_logprobs",
                                          "stream_options",
                                          "tools",
                                          "tool_choice",
                                          "parallel_tool_calls",
                                          "functions",
                                          "function_call",
                                          "response_format",
                                          "structured_outputs",
                                          "guided_json",
                                          "guided_choice",
                                          "grammar",
                                          "json_schema",
                                          "reasoning_effort",
                                          "reasoning",
                                          "thinking_token_budget",
                                          "reasoning_budget",
                                          "chat_template_kwargs",
                                          "documents",
                                          "add_generation_prompt",
                                          "continue_final_message",
                                          "ignore_eos",
                                          "min_tokens",
                                          "stop_token_ids",
                                          "include_stop_str_in_output",
                                          "return_token_ids",
                                          "include_reasoning",
                                          "priority",
                                          "suffix",
                                          "echo",
                                          "add_special_tokens",
                                          "instructions",
                                          "previous_response_id",
                                          "store",
                                          "background",
                                          "text",
                                          "include",
                                          "truncation",
                                          "metadata",
                                          "user",
                                          "service_tier",
                                          "max_tool_calls",
                                          "modalities",
                                          "audio",
                                          "cache_prompt",
                                          "id_slot",
                                          "session_id",
                                          "prompt_cache_key",
                                          "cache_salt",
                                          "verbosity",
                                          "prediction",
                                          "zzz"};

struct FieldsFuzz : DispatchFixture {
  int status_of(const std::string& path, const std::string& body) {
    generator.scripts.clear();
    for (int i = 0; i < 16; ++i) play({"ok"});
    const Response response = ask("POST", path, body);
    if (response.status != 200) {
      const Json error = Json::parse(response.body)["error"];
      EXPECT_EQ(error["message"].is_string(), true) << body;
    }
    return response.status;
  }
  const std::vector<std::pair<std::string, std::string>> routes_ = {
      {"/v1/chat/completions", R"("messages":[{"role":"user","content":"hi"}])"},
      {"/v1/completions", R"("prompt":"hi")"},
      {"/v1/responses", R"("input":"hi")"},
      {"/v1/responses/input_tokens", R"("input":"hi")"}};
};

TEST_F(FieldsFuzz, NoValueOfAFieldIsAServerError) {
  SCOPED_TRACE(fmt::format("seed {}", kSeed));
  std::mt19937 random(kSeed);
  const auto any_of = [&](const auto& list) { return list[random() % list.size()]; };
  for (const auto& [path, start] : routes_) {
    for (const auto* field : kFields)
      for (const auto* value : kValues) {
        const std::string body = fmt::format("{{{},\"{}\":{}}}", start, field, value);
        const int status = status_of(path, body);
        EXPECT_TRUE(status == 200 || status == 400 || status == 404) << status << " " << path << " " << body;
      }
    for (int i = 0; i < 500; ++i) {
      std::string body = "{" + start;
      for (int fields = 0; fields < 4; ++fields)
        body += fmt::format(",\"{}\":{}", any_of(kFields), any_of(kValues));
      const int status = status_of(path, body + "}");
      EXPECT_TRUE(status == 200 || status == 400 || status == 404) << status << " " << path << " " << body;
    }
  }
}

TEST_F(FieldsFuzz, NullIsAbsentInEveryOptionalField) {
  for (const auto& [path, start] : routes_)
    for (const auto* field : kFields) {
      if (start.find(fmt::format("\"{}\"", field)) != std::string::npos) continue;
      EXPECT_EQ(status_of(path, fmt::format("{{{},\"{}\":null}}", start, field)), 200)
          << path << " " << field;
    }
}

}  // namespace
}  // namespace godwit::serve
