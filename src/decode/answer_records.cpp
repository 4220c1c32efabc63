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

Json sampling_json(const SamplingParams& s) {
  Json bias = Json::array();
  for (const auto& [id, value] : s.logit_bias) bias.push_back({id, value});
  return {s.temperature, s.top_k, s.top_p, s.min_p, s.xtc_probability, s.xtc_threshold, s.repetition_penalty,
          s.presence_penalty, s.frequency_penalty, s.penalty_window, std::move(bias),
          s.greedy() ? Json(nullptr) : Json(s.seed.value_or(0))};
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
  return !request.constraint && (request.sampling.greedy() || request.sampling.seed);
}

std::string AnswerRecords::key_of(const GenerationRequest& request, int choice, const std::string& signature) const {
  const Json whole = {"godwit-answer-1", identity_,
                      signature,         request.prompt,
                      request.max_tokens, sampling_json(request.sampling),
                      request.choice + choice, request.min_tokens,
                      request.stop,      request.stops_begin_after,
                      request.include_stop_text, request.stop_token_ids,
                      request.shown_special_tokens, request.ignore_eos,
                      request.logprobs,  request.top_logprobs};
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
