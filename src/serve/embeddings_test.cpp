// Embeddings through dispatch(), over an embedder whose vectors say which tokens they are of.
#include "serve/dispatch.h"
#include "serve/matryoshka.h"
#include "support/serve_fixture.h"

namespace godwit::serve {
namespace {

class PlainEmbedder final : public Embedder {
 public:
  int dimensions() const override { return 3; }
  int max_tokens() const override { return 5; }
  bool allows_dimensions(int count) const override { return count == 2 || count == 3; }
  bool is_normalized() const override { return normalized; }
  bool takes_token_ids() const override { return takes_ids; }
  std::vector<int> encode(std::string_view text) const override { return {text.begin(), text.end()}; }
  std::vector<std::vector<float>> embed(const std::vector<std::vector<int>>& texts,
                                        const std::function<void()>& waiting) override {
    std::vector<std::vector<float>> vectors;
    for (const auto& text : texts) {
      waiting();
      vectors.push_back({3.0f, 4.0f, static_cast<float>(text.front()) + 0.1f});
      seen.push_back(text);
    }
    return vectors;
  }
  bool normalized = false;
  bool takes_ids = false;
  std::vector<std::vector<int>> seen;
};

struct EmbeddingsTest : ServeFixture {
  Response ask(const std::string& path, const std::string& body, ModelDirectory& directory) {
    request = {.method = "POST", .target = path, .body = body};
    request.headers.add("Host", "localhost");
    Context own{server, directory, {}, {}};
    return dispatch(request, own);
  }
  Response ask(const std::string& fields) { return ask("/v1/embeddings", "{" + fields + "}", embedding_models); }
  std::string refusal(const std::string& fields) {
    const Response response = ask(fields);
    const Json error = Json::parse(response.body)["error"];
    return fmt::format("{} {} {}", response.status, error["param"].is_null() ? "" : error["param"].get<std::string>(),
                       error["code"].get<std::string>());
  }

  PlainEmbedder embedder;
  SingleModel embedding_models{model, generator, &embedder};
  Request request;
};

TEST_F(EmbeddingsTest, VectorsComeInTheOrderOfTheTexts) {
  const Json answer = Json::parse(ask(R"("input":["b","ac"])").body);
  EXPECT_EQ(answer["object"], "list");
  ASSERT_EQ(answer["data"].size(), 2u);
  EXPECT_EQ(answer["data"][1]["index"], 1);
  EXPECT_EQ(answer["data"][0]["embedding"][2].get<float>(), 'b' + 0.1f);
  EXPECT_EQ(answer["data"][1]["embedding"][2].get<float>(), 'a' + 0.1f);
  EXPECT_EQ(answer["usage"], Json::parse(R"({"prompt_tokens":3,"total_tokens":3})"));
}

TEST_F(EmbeddingsTest, Base64HoldsTheSameBitsLowestByteFirst) {
  const Json answer = Json::parse(ask(R"("input":"b","encoding_format":"base64")").body);
  EXPECT_EQ(answer["data"][0]["embedding"], "AABAQAAAgEAzM8RC");  // 3.0, 4.0, 98.1
}

TEST_F(EmbeddingsTest, VectorsAreCutAndNormalisedWhereThatWasAskedFor) {
  EXPECT_EQ(Json::parse(ask(R"("input":"b","dimensions":2)").body)["data"][0]["embedding"], Json::array({3.0f, 4.0f}));
  const Json unit = Json::parse(ask(R"("input":"b","dimensions":2,"normalize":true)").body)["data"][0]["embedding"];
  EXPECT_EQ(unit, Json::array({0.6f, 0.8f}));
  embedder.normalized = true;
  EXPECT_EQ(Json::parse(ask(R"("input":"b","dimensions":2)").body)["data"][0]["embedding"], unit);
}

TEST_F(EmbeddingsTest, WhatIsRefusedIsNamed) {
  EXPECT_EQ(refusal(R"("input":"")"), "400 input invalid_value");
  EXPECT_EQ(refusal(R"("input":[])"), "400 input invalid_value");
  EXPECT_EQ(refusal(R"("input":["a",""])"), "400 input[1] invalid_value");
  EXPECT_EQ(refusal(R"("input":["a",7])"), "400 input[1] invalid_value");
  EXPECT_EQ(refusal(R"("x":1)"), "400 input invalid_value");
  EXPECT_EQ(refusal(R"("input":"123456")"), "400 input context_length_exceeded");
  EXPECT_EQ(refusal(R"("input":"a","dimensions":1)"), "400 dimensions invalid_value");
  EXPECT_EQ(refusal(R"("input":"a","encoding_format":"int8")"), "400 encoding_format invalid_value");
  EXPECT_EQ(refusal(R"("input":[1,2])"), "400 input invalid_value");
  EXPECT_EQ(refusal(R"("input":"a","prompt_name":"query")"), "400 prompt_name unsupported_parameter");
  embedder.normalized = true;
  EXPECT_EQ(refusal(R"("input":"a","normalize":false)"), "400 normalize unsupported_parameter");
  const Response chat_only = ask("/v1/embeddings", R"({"input":"a"})", models);
  EXPECT_EQ(chat_only.status, 400);
  EXPECT_EQ(Json::parse(chat_only.body)["error"]["message"], "the model 'org/tiny' does not support embeddings");
}

TEST_F(EmbeddingsTest, TokenIdsAreTakenWhereTheServerWasToldSo) {
  embedder.takes_ids = true;
  EXPECT_EQ(ask(R"("input":[1,2.0])").status, 200);
  EXPECT_EQ(ask(R"("input":[[3],[4,5]])").status, 200);
  EXPECT_EQ(embedder.seen, (std::vector<std::vector<int>>{{1, 2}, {3}, {4, 5}}));
  EXPECT_EQ(refusal(R"("input":[[3],[999]])"), "400 input[1] invalid_value");
}

TEST_F(EmbeddingsTest, OllamasShapes) {
  const Json many = Json::parse(ask("/api/embed", R"({"model":"tiny","input":["b","a"]})", embedding_models).body);
  EXPECT_EQ(many["embeddings"].size(), 2u);
  EXPECT_EQ(many["prompt_eval_count"], 2);
  EXPECT_EQ(Json::parse(ask("/api/embeddings", R"({"prompt":"b"})", embedding_models).body)["embedding"].size(), 3u);
  EXPECT_EQ(ask("/api/embed", R"({"input":"123456"})", embedding_models).status, 400);
  EXPECT_EQ(ask("/api/embed", R"({"input":"123456","truncate":true})", embedding_models).status, 200);
  EXPECT_EQ(embedder.seen.back(), (std::vector<int>{'1', '2', '3', '4', '6'}));
}

TEST(Matryoshka, ConfigsSayWhichDimensions) {
  EXPECT_FALSE(is_matryoshka(Json::object(), 2, 4));
  EXPECT_TRUE(is_matryoshka(Json::parse(R"({"is_matryoshka":true})"), 2, 4));
  EXPECT_FALSE(is_matryoshka(Json::parse(R"({"is_matryoshka":true})"), 5, 4));
  EXPECT_FALSE(is_matryoshka(Json::parse(R"({"is_matryoshka":true,"matryoshka_dimensions":[1,3]})"), 2, 4));
  EXPECT_TRUE(is_matryoshka(Json::parse(R"({"matryoshka_dimensions":[1,3]})"), 3, 4));
}

}  // namespace
}  // namespace godwit::serve
