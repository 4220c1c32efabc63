// For tests of this module: a model of 258 byte-level tokens, an engine that plays scripted events, and a
// peer.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "decode/grammar_source.h"
#include "serve/context.h"
#include "serve/json_fields.h"
#include "serve/request_error.h"
#include "support/byte_tokenizer.h"

namespace godwit::serve {

inline constexpr int kImStart = 256;
inline constexpr int kImEnd = 257;
inline constexpr std::string_view kChatMl =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

class ScriptedGenerator final : public Generator {
 public:
  using Script = std::vector<decode::TokenEvent>;

  // A request of several choices takes so many scripts; their events come one choice after another.
  std::unique_ptr<TokenSource> submit(decode::GenerationRequest request) override {
    if (refusals > 0) {
      --refusals;
      fail(ErrorCode::overloaded, "engine", "the queue is full");
    }
    requests.push_back(std::move(request));
    const int choices = requests.back().choices;
    Script script;
    for (int choice = 0; choice < choices && !scripts.empty(); ++choice) {
      for (decode::TokenEvent& event : scripts.front()) {
        event.choice = choice;
        script.push_back(std::move(event));
      }
      scripts.pop_front();
    }
    return std::make_unique<Source>(*this, std::move(script), choices);
  }
  // Row t favours token t + 1 by ten, so that tests can tell the rows apart.
  std::vector<float> logits(const std::vector<int>& tokens) override {
    std::vector<float> rows(tokens.size() * 258, 0.0f);
    for (std::size_t t = 0; t < tokens.size(); ++t) rows[t * 258 + t + 1] = 10.0f;
    return rows;
  }

  std::optional<std::uint64_t> forget_prompts(bool) override {
    if (!kept_bytes) return std::nullopt;
    return std::exchange(*kept_bytes, 0);
  }

  std::optional<std::uint64_t> kept_bytes;  // of prompts; absent: there is no cache
  std::deque<Script> scripts;  // of the choices to come; one that is used up never ends
  std::vector<decode::GenerationRequest> requests;
  int refusals = 0;     // so many submissions meet a full queue
  int cancelled = 0;    // sources that were dropped before their last event
  bool breaks = false;  // a script that is used up ends with Error{internal}

 private:
  class Source final : public TokenSource {
   public:
    Source(ScriptedGenerator& owner, Script script, int choices)
        : owner_(owner), script_(std::move(script)), going_(choices) {}
    ~Source() override { owner_.cancelled += going_ == 0 ? 0 : 1; }
    // The choice ends with its next event.
    void cancel(int choice) override {
      for (std::size_t i = at_; i < script_.size(); ++i)
        if (script_[i].choice == choice) script_[i].finish = decode::FinishReason::cancelled;
    }
    std::optional<decode::TokenEvent> next_for(double, bool& timed_out) override {
      if (going_ == 0) return timed_out = false, std::nullopt;
      if (at_ == script_.size() && owner_.breaks) fail(ErrorCode::internal, "engine", "the step failed");
      timed_out = at_ == script_.size();
      if (timed_out) return std::nullopt;
      going_ -= script_[at_].finish != decode::FinishReason::none ? 1 : 0;
      return script_[at_++];
    }
    decode::Timings timings() const override { return {.prompt_tokens = 3, .cached_tokens = 2}; }
    std::uint64_t seed() const override { return 77; }

   private:
    ScriptedGenerator& owner_;
    Script script_;
    std::size_t at_ = 0;
    int going_;  // choices that have not ended
  };
};

// The events of an answer, a byte per token, the last of which ends it.
inline ScriptedGenerator::Script spelled(std::string_view text, decode::FinishReason finish) {
  ScriptedGenerator::Script script;
  for (const char c : text) {
    decode::TokenEvent event;
    event.id = static_cast<unsigned char>(c);
    event.text = std::string(1, c);
    event.logprob = decode::TokenLogprob{event.id, -0.5};
    event.top_logprobs = {{event.id, -0.5}, {event.id ^ 1, -1.5}};
    script.push_back(std::move(event));
  }
  if (!script.empty()) script.back().finish = finish;
  return script;
}

// Collects what a stream sends; hangs up after `patience` events.
class Collector final : public EventSink {
 public:
  explicit Collector(int patience = 1 << 20) : patience_(patience) {}
  using EventSink::send;
  void send(std::string_view name, std::string_view data) override {
    if (patience_-- == 0) fail(ErrorCode::cancelled, "http", "the client went away");
    names.emplace_back(name);
    events.emplace_back(data);
  }
  void idle() override {}
  const std::string& keep_alive() const { return keep_alive_; }
  Json json(std::size_t i) const { return Json::parse(events[i]); }

  std::vector<std::string> names;   // "" where an event has none
  std::vector<std::string> events;  // their data

 private:
  int patience_;
};

struct ServeFixture : ::testing::Test {
  ServeFixture() {
    model.id = "org/tiny";
    model.aliases = {"tiny"};
    model.fingerprint = "fp_0";
    model.context_length = 512;
    model.vocabulary = 258;
    model.tokenizer = &tokenizer;
    model.chat_encoder = std::make_shared<text::ChatEncoder>(tokenizer);
    model.chat_template = &chat_template;
    model.grammars = std::make_shared<decode::GrammarSource>(tokenizer, std::set<int>{kImEnd}, 258);
  }

  text::Tokenizer tokenizer = testing::byte_tokenizer({"<|im_start|>", "<|im_end|>"});
  text::ChatTemplate chat_template{std::string(kChatMl), Json::object(), "template"};
  ServedModel model;
  ScriptedGenerator generator;
  SingleModel models{model, generator};
  ServerState server{{}, {}, /*request_seconds=*/3600, [] { return 1234; }};
  Context context{server, models, {}, {}};
};

// Runs `body` and returns the RequestError it throws, as "param: code"; "" when there is none.
template <typename Body>
std::string refusal_of(Body&& body) {
  try {
    body();
  } catch (const RequestError& e) {
    return e.fields().param + ": " + e.fields().code;
  }
  return "";
}

}  // namespace godwit::serve
