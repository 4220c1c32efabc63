// Which requests share a recorded answer: those that are equal in everything that can change it.
#include "decode/answer_records.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>

#include "cache/cold_test_support.h"

namespace godwit::decode {
namespace {

using Change = std::function<void(GenerationRequest&)>;

// Each names what it changes.
std::map<std::string, Change> changes() {
  const auto sampling = [](auto field, auto value) {
    return [=](GenerationRequest& request) { request.sampling.*field = value; };
  };
  using P = SamplingParams;
  using R = GenerationRequest;
  return {{"temperature", sampling(&P::temperature, 0.5)},
          {"top_k", sampling(&P::top_k, 5)},
          {"top_p", sampling(&P::top_p, 0.5)},
          {"min_p", sampling(&P::min_p, 0.5)},
          {"xtc_probability", sampling(&P::xtc_probability, 0.5)},
          {"xtc_threshold", sampling(&P::xtc_threshold, 0.3)},
          {"repetition_penalty", sampling(&P::repetition_penalty, 1.5)},
          {"presence_penalty", sampling(&P::presence_penalty, 0.5)},
          {"frequency_penalty", sampling(&P::frequency_penalty, 0.5)},
          {"penalty_window", sampling(&P::penalty_window, 3)},
          {"logit_bias", [](R& r) { r.sampling.logit_bias[3] = 1; }},
          {"seed", sampling(&P::seed, 8u)},
          {"typical_p", sampling(&P::typical_p, 0.5)},
          {"top_n_sigma", sampling(&P::top_n_sigma, 1.0)},
          {"dynatemp_range", sampling(&P::dynatemp_range, 0.5)},
          {"dynatemp_exponent", sampling(&P::dynatemp_exponent, 2.0)},
          {"dry_multiplier", sampling(&P::dry_multiplier, 0.8)},
          {"dry_base", sampling(&P::dry_base, 2.0)},
          {"dry_allowed_length", sampling(&P::dry_allowed_length, 3)},
          {"dry_window", sampling(&P::dry_window, 9)},
          {"dry_breakers", [](R& r) { r.sampling.dry_breakers = {4}; }},
          {"mirostat", sampling(&P::mirostat, 2)},
          {"mirostat_tau", sampling(&P::mirostat_tau, 4.0)},
          {"mirostat_eta", sampling(&P::mirostat_eta, 0.2)},
          {"bad_words", [](R& r) { r.sampling.bad_words = {{1, 2}}; }},
          {"allowed_ids", [](R& r) { r.sampling.allowed_ids = std::vector<int>{1, 2}; }},
          {"order", [](R& r) { r.sampling.order = sampler_preset("vllm"); }},
          {"prompt", [](R& r) { r.prompt = {1, 2, 4}; }},
          {"max_tokens", [](R& r) { r.max_tokens = 9; }},
          {"choice", [](R& r) { r.choice = 1; }},
          {"min_tokens", [](R& r) { r.min_tokens = 2; }},
          {"stop", [](R& r) { r.stop = {"a"}; }},
          {"stops_begin_after", [](R& r) { r.stops_begin_after = "a"; }},
          {"stops_wait_if", [](R& r) { r.stops_wait_if = "a"; }},
          {"include_stop_text", [](R& r) { r.include_stop_text = true; }},
          {"stop_token_ids", [](R& r) { r.stop_token_ids = {7}; }},
          {"shown_special_tokens", [](R& r) { r.shown_special_tokens = {7}; }},
          {"ignore_eos", [](R& r) { r.ignore_eos = true; }},
          {"cache_salt", [](R& r) { r.cache_salt = "a"; }},
          {"logprobs", [](R& r) { r.logprobs = true; }},
          {"top_logprobs", [](R& r) { r.top_logprobs = 2; }}};
}

GenerationRequest seeded() {
  GenerationRequest request;
  request.prompt = {1, 2, 3};
  request.sampling.seed = 7;
  return request;
}

class AnswerKeys : public testing::Test {
 protected:
  const cache::TestFolder folder_{"answer_keys"};
  const AnswerRecords records_{folder_.path(), "model", Log()};
};

TEST_F(AnswerKeys, WhatCanChangeAnAnswerIsPartOfItsKey) {
  std::map<std::string, std::string> owners = {{records_.key_of(seeded(), 0, "kv"), "nothing"}};
  for (const auto& [name, change] : changes()) {
    GenerationRequest request = seeded();
    change(request);
    const auto [at, is_new] = owners.emplace(records_.key_of(request, 0, "kv"), name);
    EXPECT_TRUE(is_new) << name << " has the key of " << at->second;
  }
  EXPECT_TRUE(owners.emplace(records_.key_of(seeded(), 0, "other kv"), "signature").second);
  EXPECT_FALSE(owners.emplace(records_.key_of(seeded(), 1, "kv"), "the second choice").second) << "it is `choice` 1";
}

TEST_F(AnswerKeys, WhatCannotChangeAnAnswerIsNot) {
  GenerationRequest request = seeded();
  request.priority = 3;
  request.choices = 5;
  EXPECT_EQ(records_.key_of(request, 0, "kv"), records_.key_of(seeded(), 0, "kv"));
}

TEST_F(AnswerKeys, OnlyAnswersThatTheirTokensCanGoOnAreRecorded) {
  GenerationRequest request = seeded();
  EXPECT_TRUE(AnswerRecords::is_recordable(request));
  request.sampling.mirostat = 2;  // its level is learnt from logits, which nobody keeps
  EXPECT_FALSE(AnswerRecords::is_recordable(request));
  request.sampling.temperature = 0;  // greedy knows no mirostat
  EXPECT_TRUE(AnswerRecords::is_recordable(request));
  request = seeded();
  request.sampling.seed.reset();
  EXPECT_FALSE(AnswerRecords::is_recordable(request));
}

}  // namespace
}  // namespace godwit::decode
