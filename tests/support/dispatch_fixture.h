// Requests through dispatch(), without a socket, to the scripted engine of serve_fixture.h.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "serve/dispatch.h"
#include "support/serve_fixture.h"

namespace godwit::serve {

struct DispatchFixture : ServeFixture {
  Response ask(std::string method, std::string target, std::string body = "") {
    sent = Request{.method = std::move(method), .target = std::move(target), .body = std::move(body)};
    sent.headers.add("Host", "localhost");
    if (on_wait) sent.check_alive = on_wait;
    return dispatch(sent, context);
  }
  Response post(std::string target, const Json& body) {
    return ask("POST", std::move(target), dump_json(body));
  }
  static Json json_of(const Response& response) {
    EXPECT_EQ(response.status, 200) << response.body;
    return Json::parse(response.body);
  }
  // status, param and code of a refusal: "400 tools[0].name invalid_value".
  static std::string refusal_of(const Response& response) {
    const Json error = Json::parse(response.body)["error"];
    const auto word = [&](const char* key) {
      return error[key].is_string() ? error[key].get<std::string>() : "-";
    };
    return fmt::format("{} {} {}", response.status, word("param"), word("code"));
  }
  // Every next answer of the model is one of these, a byte a token; a character comes with its last byte, as
  // engines do.
  void play(std::vector<std::string> answers, decode::FinishReason finish = decode::FinishReason::stop) {
    for (const std::string& answer : answers) {
      auto script = spelled(answer, finish);
      for (std::size_t i = 0; i + 1 < script.size(); ++i)
        if ((answer[i + 1] & 0xC0) == 0x80) script[i + 1].text.insert(0, std::exchange(script[i].text, ""));
      generator.scripts.push_back(std::move(script));
    }
  }
  Collector stream_of(Json body, const std::string& target) {
    body["stream"] = true;
    Collector sink;
    const Response response = post(target, body);
    EXPECT_EQ(response.status, 200) << response.body;
    if (response.events) response.events(sink);
    return sink;
  }
  std::string prompt_text(std::size_t request_index = 0) const {
    return tokenizer.decode(generator.requests.at(request_index).prompt, /*skip_special_tokens=*/false);
  }

  Request sent;
  std::function<void()> on_wait;
};

}  // namespace godwit::serve
