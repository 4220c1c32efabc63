#include "serve/logprobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace godwit::serve {
namespace {

constexpr double kLowestLogprob = -9999.0;  // what OpenAI and vLLM send for a probability of zero

bool is_whole_utf8(const std::string& bytes) {
  return Json(bytes).dump(-1, ' ', false, Json::error_handler_t::ignore) ==
         Json(bytes).dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json bytes_json(std::string_view bytes) {
  Json list = Json::array();
  for (const char c : bytes) list.push_back(static_cast<unsigned char>(c));
  return list;
}

// A padded row of the logits may have no token; it can still be among the likeliest.
std::string bytes_of(int id, const text::Tokenizer& tokenizer) {
  return tokenizer.token_of(id) ? tokenizer.bytes_of(id) : "";
}

struct Spelling {
  std::string token;  // may hold invalid UTF-8: dump_json replaces it
  bool has_bytes;
};

Spelling spelling_of(int id, const std::string& bytes, const text::Tokenizer& tokenizer) {
  if (!bytes.empty()) return {bytes, true};
  return {tokenizer.token_of(id).value_or(""), false};
}

Json chat_token(int id, double logprob, const std::string& bytes, const text::Tokenizer& tokenizer) {
  const Spelling spelling = spelling_of(id, bytes, tokenizer);
  return {{"token", spelling.token},
          {"logprob", reported_logprob(logprob)},
          {"bytes", spelling.has_bytes ? bytes_json(bytes) : Json(nullptr)}};
}

std::string legacy_token(int id, const std::string& bytes, const text::Tokenizer& tokenizer) {
  const std::string token = spelling_of(id, bytes, tokenizer).token;
  if (is_whole_utf8(token)) return token;
  std::string spelled = "bytes:";
  for (const char c : token) spelled += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return spelled;
}

}  // namespace

double reported_logprob(double logprob) {
  return std::isfinite(logprob) ? std::clamp(logprob, kLowestLogprob, 0.0) : kLowestLogprob;
}

void VisibleLogprobs::enqueue(const decode::TokenEvent& event) {
  TokenPiece piece = text_.add(event.id);
  // End tokens and other control tokens add nothing to the answer, so they have no entry.
  if (piece.bytes.empty()) return;
  pending_.push_back({.entry = {.id = event.id,
                                .logprob = event.logprob ? event.logprob->logprob : 0.0,
                                .bytes = std::move(piece.bytes),
                                .top = event.top_logprobs,
                                .text_offset = piece.points},
                      .begin = piece.begin,
                      .end = piece.end});
}

std::vector<LogprobEntry> VisibleLogprobs::add(const decode::TokenEvent& event) {
  if (event.id >= 0) enqueue(event);
  shown_ += event.text.size();
  std::vector<LogprobEntry> out;
  const bool is_last = event.finish != decode::FinishReason::none;
  while (!pending_.empty() && (is_last || is_complete(pending_.front()))) {
    Pending token = std::move(pending_.front());
    pending_.pop_front();
    if (is_last && event.stop_match) {
      if (token.begin >= shown_) continue;  // the stop string swallowed it
      const std::size_t cut = std::min(token.end - std::min(token.end, shown_), token.entry.bytes.size());
      token.entry.bytes.resize(token.entry.bytes.size() - cut);
    }
    out.push_back(std::move(token.entry));
  }
  return out;
}

Json chat_logprob_json(const LogprobEntry& entry, const text::Tokenizer& tokenizer) {
  Json json = chat_token(entry.id, entry.logprob, entry.bytes, tokenizer);
  Json top = Json::array();
  for (const auto& other : entry.top)
    top.push_back(chat_token(other.id, other.logprob, bytes_of(other.id, tokenizer), tokenizer));
  json["top_logprobs"] = std::move(top);
  return json;
}

void LegacyLogprobs::add(const LogprobEntry& entry, std::size_t text_offset, bool is_first_of_prompt) {
  const std::string token = legacy_token(entry.id, entry.bytes, tokenizer_);
  tokens_.push_back(token);
  text_offset_.push_back(text_offset);
  if (is_first_of_prompt) {
    token_logprobs_.push_back(nullptr);
    top_logprobs_.push_back(nullptr);
    return;
  }
  token_logprobs_.push_back(reported_logprob(entry.logprob));
  Json top = Json::object();
  for (const auto& other : entry.top)
    top[legacy_token(other.id, bytes_of(other.id, tokenizer_), tokenizer_)] = reported_logprob(other.logprob);
  top[token] = reported_logprob(entry.logprob);  // the token itself, even outside the top
  top_logprobs_.push_back(std::move(top));
}

Json LegacyLogprobs::json() const {
  return {{"tokens", tokens_},
          {"token_logprobs", token_logprobs_},
          {"top_logprobs", top_logprobs_},
          {"text_offset", text_offset_}};
}

}  // namespace godwit::serve
