#include "decode/answer_records.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/sha256.h"

namespace godwit::decode {
namespace {

namespace fs = std::filesystem;

constexpr auto kKept = std::chrono::hours(7 * 24);

// [id, logprob, [[id, logprob], ...]]: numbers are written so that they are read with the same bits.
Json to_json(const AnswerBuilder::Choice& choice) {
  Json top = Json::array();
  for (const TokenLogprob& each : choice.top_logprobs) top.push_back({each.id, each.logprob});
  return {choice.id, choice.logprob ? Json(choice.logprob->logprob) : Json(nullptr), std::move(top)};
}

AnswerBuilder::Choice choice_from(const Json& json) {
  AnswerBuilder::Choice choice{.id = json.at(0).get<int>()};
  if (!json.at(1).is_null()) choice.logprob = TokenLogprob{choice.id, json.at(1).get<double>()};
  for (const Json& each : json.at(2)) choice.top_logprobs.push_back({each.at(0).get<int>(), each.at(1).get<double>()});
  return choice;
}

// Of every field: one that is added later does not compile until it stands here.
Json sampling_json(const SamplingParams& params) {
  const auto& [temperature, top_k, top_p, min_p, xtc_probability, xtc_threshold, repetition_penalty, presence_penalty,
               frequency_penalty, penalty_window, logit_bias, seed, typical_p, top_n_sigma, dynatemp_range,
               dynatemp_exponent, dry_multiplier, dry_base, dry_allowed_length, dry_window, dry_breakers, mirostat,
               mirostat_tau, mirostat_eta, bad_words, allowed_ids, order] = params;
  Json bias = Json::array(), stages = Json::array();
  for (const auto& [id, value] : logit_bias) bias.push_back({id, value});
  for (const SamplerStage stage : order) stages.push_back(static_cast<int>(stage));
  return Json::array({temperature, top_k, top_p, min_p, xtc_probability, xtc_threshold, repetition_penalty,
                      presence_penalty, frequency_penalty, penalty_window, std::move(bias),
                      params.greedy() ? Json(nullptr) : Json(seed.value_or(0)), typical_p, top_n_sigma, dynatemp_range,
                      dynatemp_exponent, dry_multiplier, dry_base, dry_allowed_length, dry_window, dry_breakers, mirostat,
                      mirostat_tau, mirostat_eta, bad_words, allowed_ids ? Json(*allowed_ids) : Json(nullptr),
                      std::move(stages)});
}

}  // namespace

AnswerRecords::AnswerRecords(const fs::path& folder, std::string identity, const Log& log)
    : folder_(folder / "answers"), identity_(std::move(identity)), log_(log) {
  std::error_code ignored;
  fs::create_directories(folder, ignored);
  if (::mkdir(folder_.c_str(), 0700) != 0 && !fs::is_directory(folder_))
    fail(ErrorCode::io, "answers", "{}: cannot be made", folder_.string());
  for (const fs::directory_entry& item : fs::directory_iterator(folder_, ignored)) {
    if (item.path().extension() != ".jsonl") continue;
    if (fs::file_time_type::clock::now() - item.last_write_time(ignored) > kKept)
      fs::remove(item.path(), ignored);
    else
      left_.insert(item.path().stem().string());
  }
}

bool AnswerRecords::is_recordable(const GenerationRequest& request) {
  const bool is_repeatable = request.sampling.greedy() || (request.sampling.seed && request.sampling.mirostat == 0);
  return !request.constraint && is_repeatable;
}

std::string AnswerRecords::key_of(const GenerationRequest& request, int choice, const std::string& signature) const {
  const auto& [prompt, max_tokens, sampling, choices, first_choice, min_tokens, stop, stops_begin_after, stops_wait_if,
               include_stop_text, stop_token_ids, shown_special_tokens, ignore_eos, priority, cache_salt, kv, constraint, logprobs,
               top_logprobs] = request;
  // How many choices there are and when they are made change none of them; the KV policy stands in the signature.
  const Json whole = Json::array({"godwit-answer-2", identity_, signature, prompt, max_tokens, sampling_json(sampling),
                                  first_choice + choice, min_tokens, stop, stops_begin_after, stops_wait_if,
                                  include_stop_text, stop_token_ids, shown_special_tokens, ignore_eos, cache_salt,
                                  logprobs, top_logprobs});
  return sha256_of(dump_json(whole));
}

AnswerRecords::Choices AnswerRecords::take(const std::string& key) {
  Choices choices;
  if (left_.erase(key) == 0) return choices;
  std::ifstream file(file_of(key));
  try {
    // A line that was not written to its end has no end.
    for (std::string line; std::getline(file, line) && !file.eof();) choices.push_back(choice_from(parse_json(line, "answers")));
  } catch (const std::exception& error) {
    log_.warning("answers: {}: {}", file_of(key).string(), error.what());
  }
  file.close();
  drop(key);
  add(key, choices);
  return choices;
}

void AnswerRecords::add(const std::string& key, std::span<const AnswerBuilder::Choice> made) const {
  if (made.empty()) return;
  std::string lines;
  for (const AnswerBuilder::Choice& choice : made) lines += dump_json(to_json(choice)) + "\n";
  const int file = ::open(file_of(key).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  bool is_written = file >= 0;
  for (std::string_view left = lines; is_written && !left.empty();) {
    const ssize_t count = ::write(file, left.data(), left.size());
    is_written = count > 0;
    if (is_written) left.remove_prefix(static_cast<std::size_t>(count));
  }
  if (file >= 0) ::close(file);
  if (!is_written) log_.warning("answers: {}: cannot be written", file_of(key).string());
}

void AnswerRecords::drop(const std::string& key) const {
  std::error_code ignored;
  fs::remove(file_of(key), ignored);
}

}  // namespace godwit::decode
