// T-1.11 for the APIs beside OpenAI's: whatever stands at any place of a rich request, it is answered or refused in the
// shape of its API, and is never our fault.
#include "serve/dialect.h"
#include "serve/dispatch.h"
#include "support/serve_fixture.h"

namespace godwit::serve {
namespace {

using decode::FinishReason;

const std::vector<const char*> kValues = {
    "null", "true", "0", "-1", "2.5", "1e18", "-1e18", "18446744073709551615", "1e308", R"("")", R"("x")", R"("\ud83d\ude38")",
    "[]", "{}", "[null]", "[[]]", "[{}]", R"([1,"a",{}])", R"({"type":"text"})", R"({"type":5})", R"([{"type":"tool_result"}])",
    R"([{"type":"tool_use","id":"a","name":"b","input":[]}])", R"([{"role":"user"}])", R"([{"function":{}}])"};

const std::vector<std::pair<const char*, const char*>> kBodies = {
    {"/v1/messages", R"({"model":"tiny","max_tokens":5,"stream":false,"system":[{"type":"text","text":"S","cache_control":{"type":"ephemeral"}}],
      "messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},
      {"type":"tool_use","id":"1","name":"f","input":{"a":1}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1",
      "is_error":true,"content":[{"type":"text","text":"r"}]},{"type":"document","title":"d","source":{"type":"text","data":"D"}},
      {"type":"search_result","title":"d","source":"u","content":[{"type":"text","text":"C"}]}]}],
      "temperature":0.5,"top_p":0.5,"top_k":3,"stop_sequences":["z"],"thinking":{"type":"enabled","budget_tokens":2000},
      "output_config":{"effort":"low"},"metadata":{"user_id":"u"}})"},
    {"/v1/messages/count_tokens", R"({"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}],"system":"S"})"},
    {"/api/chat", R"({"model":"tiny","stream":false,"messages":[{"role":"system","content":"s"},{"role":"assistant","content":"","thinking":"t",
      "tool_calls":[{"id":"i","function":{"name":"f","arguments":{"a":1}}}]},{"role":"tool","tool_name":"f","tool_call_id":"i","content":"r"},
      {"role":"user","content":"hi","images":[]}],"think":false,"keep_alive":"5m","format":"","logprobs":true,"top_logprobs":1,
      "options":{"temperature":0.5,"num_predict":5,"num_ctx":100,"top_k":4,"top_p":0.5,"min_p":0.1,"seed":1,"stop":["z"],
      "repeat_penalty":1.1,"repeat_last_n":3,"presence_penalty":0.1,"frequency_penalty":0.1,"typical_p":1,"mirostat":0}})"},
    {"/api/generate", R"({"model":"tiny","stream":false,"prompt":"p","system":"s","raw":false,"suffix":"","template":"","context":[],"images":[]})"},
    {"/api/show", R"({"model":"tiny","verbose":true})"},
    {"/api/embed", R"({"model":"tiny","input":["a"],"truncate":true,"dimensions":3,"keep_alive":0})"},
    {"/api/embeddings", R"({"model":"tiny","prompt":"a"})"},
    {"/v1/embeddings", R"({"model":"tiny","input":["a"],"encoding_format":"float","dimensions":3,"normalize":true,"user":"u"})"},
    {"/tokenize", R"({"content":"a","add_special":true,"parse_special":true,"with_pieces":true})"},
    {"/tokenize", R"({"prompt":"a","add_special_tokens":true,"return_token_strs":true,"model":"tiny"})"},
    {"/detokenize", R"({"tokens":[1,2],"model":"tiny"})"},
    {"/apply-template", R"({"messages":[{"role":"user","content":"a"}]})"},
    {"/completion", R"({"prompt":"a","n_predict":3,"n_probs":2,"stream":false,"stop":["z"],"temperature":0.5})"},
    {"/infill", R"({"input_prefix":"a","input_suffix":"b","input_extra":[{"filename":"f","text":"t"}],"prompt":"p"})"},
    {"/rerank", R"({"query":"a","documents":["b"]})"}};

class OneEmbedder final : public Embedder {
 public:
  int dimensions() const override { return 3; }
  int max_tokens() const override { return 8; }
  bool is_normalized() const override { return false; }
  std::vector<int> encode(std::string_view text) const override { return {text.begin(), text.end()}; }
  std::vector<std::vector<float>> embed(const std::vector<std::vector<int>>& texts,
                                        const std::function<void()>&) override {
    return std::vector<std::vector<float>>(texts.size(), {1, 2, 3});
  }
};

struct ApisFuzz : ServeFixture {
  void check(const std::string& path, const Json& body) {
    generator.scripts.assign(16, spelled("ok", FinishReason::stop));
    Request request{.method = "POST", .target = path, .body = dump_json(body)};
    request.headers.add("Host", "localhost");
    const Response response = dispatch(request, own);
    ++asked;
    if (response.events) {
      Collector sink;
      response.events(sink);
      return;
    }
    if (response.status == 200) return;
    EXPECT_TRUE(response.status == 400 || response.status == 404 || response.status == 501)
        << response.status << " " << path << " " << request.body << " " << response.body;
    const Json refusal = Json::parse(response.body);
    const Dialect dialect = dialect_of(request.path);
    EXPECT_TRUE((dialect == Dialect::ollama ? refusal["error"] : refusal["error"]["message"]).is_string()) << response.body;
  }

  // Every place below `at`, with every value in its stead.
  void replace_all(const std::string& path, Json& body, Json& at) {
    const Json before = at;
    for (const auto* value : kValues) {
      at = Json::parse(value);
      check(path, body);
    }
    at = before;
    if (!at.is_structured()) return;
    for (Json& below : at) replace_all(path, body, below);
  }

  OneEmbedder embedder;
  SingleModel own_models{model, generator, &embedder};
  Context own{server, own_models, {}, {}};
  int asked = 0;
};

TEST_F(ApisFuzz, NoValueAtAnyPlaceIsAServerError) {
  for (const auto& [path, text] : kBodies) {
    Json body = Json::parse(text);
    check(path, body);
    replace_all(path, body, body);
  }
  EXPECT_GT(asked, 3000);
}

}  // namespace
}  // namespace godwit::serve
