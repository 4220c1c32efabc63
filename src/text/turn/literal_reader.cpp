#include "text/turn/literal_reader.h"

#include <algorithm>

namespace godwit::text {
namespace {

constexpr std::size_t kMaxDepth = 100;  // deeper brackets are text; JSON readers stop somewhere too

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

std::string without_commas(std::string gap) {
  std::erase(gap, ',');
  return gap;
}

}  // namespace

LiteralReader::LiteralReader(const LiteralSyntax& syntax, Shape shape, std::vector<std::string> positions)
    : syntax_(syntax), shape_(shape), positions_(std::move(positions)) {}

bool LiteralReader::read(TurnInput& in, std::string& json) {
  while (state_ != State::done) {
    if (step(in, json)) continue;
    if (!in.has_ended()) return false;
    was_cut_ |= state_ != State::after;  // where only closers are missing, nothing of the value is
    close_all(json);
  }
  return true;
}

bool LiteralReader::step(TurnInput& in, std::string& json) {
  if (state_ == State::bare) return read_bare(in, json);
  if (in.is_empty()) return false;
  if (state_ == State::string) return read_string(in, json);
  const Match end = end_at(in);
  if (end == Match::maybe) return false;
  if (end == Match::yes) {
    close_all(json);
    return true;
  }
  const char c = in.rest().front();
  if (is_space(c)) {
    if (state_ == State::sign || (state_ == State::value && !frames_.empty())) json += c;
    if (state_ != State::sign && state_ != State::value) gap_ += c;
    in.take(1);
    return true;
  }
  switch (state_) {
    case State::value: return read_value(in, json);
    case State::element: return read_element(in, json);
    case State::key: return read_key(in, json);
    case State::sign: return read_sign(in, json);
    default: return read_after(in, json);
  }
}

bool LiteralReader::read_value(TurnInput& in, std::string& json) {
  const Match quoted = quote_at(in, quote_);
  if (quoted == Match::maybe) return false;
  const char c = in.rest().front();
  if (quoted == Match::yes) {
    in.take(quote_.marker.text.size());
    json += '"';
    is_key_ = false;
    state_ = State::string;
  } else if (frames_.size() < kMaxDepth && (c == '{' || c == '[' || (c == '(' && syntax_.is_python))) {
    in.take(1);
    open(c, json);
  } else if (is_closer(c) || c == ',') {
    json += "null";
    finish_value();
  } else {
    state_ = State::bare;
  }
  return true;
}

void LiteralReader::open(char c, std::string& json) {
  const bool is_call = c == '(' && frames_.empty() && shape_ == Shape::call_arguments;
  const bool is_object = c == '{' || is_call;
  frames_.push_back({c == '{' ? '}' : c == '[' ? ']' : ')', is_object});
  json += is_object ? '{' : '[';
  state_ = is_object ? State::key : State::element;
}

bool LiteralReader::read_element(TurnInput& in, std::string& json) {
  const char c = in.rest().front();
  if (is_closer(c)) {
    in.take(1);
    close_with(c, json);
  } else if (c == ',') {
    in.take(1);
    if (gap_.find(',') == std::string::npos) gap_ += c;
  } else {
    start_element(json);
    state_ = State::value;
  }
  return true;
}

bool LiteralReader::read_key(TurnInput& in, std::string& json) {
  const char c = in.rest().front();
  if (is_closer(c) || c == ',') return read_element(in, json);
  if (has_arguments()) return read_argument_name(in, json);
  const Match quoted = quote_at(in, quote_);
  if (quoted == Match::maybe) return false;
  if (quoted == Match::yes) {
    in.take(quote_.marker.text.size());
    start_element(json);
    json += '"';
    is_key_ = true;
    state_ = State::string;
    return true;
  }
  const auto size = word(in, ":=,}])\"' \n\r\t");
  if (!size) return false;
  if (*size == 0) {  // a sign without a key
    in.take(1);
    return true;
  }
  start_element(json);
  json += json_string(in.rest().substr(0, *size));
  in.take(*size);
  state_ = State::sign;
  return true;
}

// `name=`, or a value that takes the name of its position.
bool LiteralReader::read_argument_name(TurnInput& in, std::string& json) {
  const std::string_view text = in.rest();
  std::size_t size = 0;
  while (size < text.size() && is_word(text[size])) ++size;
  const auto gap = in.space(size);
  if (!gap) return false;
  const std::size_t sign = size + *gap;
  const bool is_named = size > 0 && sign < text.size() && text[sign] == '=';
  if (is_named && sign + 1 == text.size() && !in.has_ended()) return false;
  const auto position = static_cast<std::size_t>(frames_.back().count);
  start_element(json);
  if (is_named && text.substr(sign + 1, 1) != "=") {
    json += json_string(text.substr(0, size));
    in.take(sign + 1);
  } else {
    json += json_string(position < positions_.size() ? positions_[position] : "arg" + std::to_string(position));
  }
  json += ':';
  state_ = State::value;
  return true;
}

bool LiteralReader::read_sign(TurnInput& in, std::string& json) {
  const char c = in.rest().front();
  json += ':';
  state_ = State::value;
  if (c == ':' || c == '=') in.take(1);
  return true;
}

bool LiteralReader::read_after(TurnInput& in, std::string& json) {
  state_ = frames_.back().is_object ? State::key : State::element;
  return state_ == State::key ? read_key(in, json) : read_element(in, json);
}

bool LiteralReader::read_string(TurnInput& in, std::string& json) {
  const std::string_view text = in.rest();
  const std::string& quote = quote_.marker.text;
  std::size_t stop = std::min(end_token(in), text.size());
  const bool is_ended = stop < text.size();
  bool is_open = false;
  if (quote_.is_verbatim) {
    const Marker* const markers[] = {&quote_.marker};
    const auto found = in.find(markers);
    if (found.at <= stop) {
      stop = found.at;
      is_open = found.marker == nullptr;
    }
  } else {
    stop = std::min(stop, text.find_first_of(std::string{quote.front(), '\\'}));
  }
  append_json_escaped(json, text.substr(0, stop));
  in.take(stop);
  if (stop > 0) return true;
  if (is_open) return false;
  if (is_ended && end_at(in) == Match::yes) {  // a closer by its id: the quote was forgotten
    finish_string(json);
    return true;
  }
  if (!quote_.is_verbatim && in.rest().front() == '\\') return read_escape(in, json);
  const Match match = in.at(quote);
  if (match == Match::maybe) return false;
  if (match == Match::yes) {
    in.take(quote.size());
    finish_string(json);
  } else {  // one quote inside three
    append_json_escaped(json, in.rest().substr(0, 1));
    in.take(1);
  }
  return true;
}

void LiteralReader::finish_string(std::string& json) {
  json += '"';
  if (is_key_)
    state_ = State::sign;
  else
    finish_value();
}

// Everything that is not valid JSON or Python by itself ends here: up to a comma or closer outside of brackets.
bool LiteralReader::read_bare(TurnInput& in, std::string& json) {
  while (!in.is_empty()) {
    const Match end = end_at(in);
    if (end == Match::maybe) return false;
    const char c = in.rest().front();
    const bool is_last = c == ',' || is_closer(c);
    if (end == Match::yes || (is_last && bare_depth_ == 0)) break;
    if ((is_space(c) || c == '"') && bare_to_json(bare_).front() != '"') break;
    if (is_space(c) && frames_.empty()) break;
    if (c == '(' || c == '[' || c == '{') ++bare_depth_;
    if (c != ',' && is_closer(c)) --bare_depth_;
    bare_ += c;
    in.take(1);
  }
  if (in.is_empty() && !in.has_ended()) return false;
  was_cut_ |= in.is_empty();
  const std::size_t size = bare_.find_last_not_of(" \n\r\t") + 1;
  json += bare_to_json(std::string_view(bare_).substr(0, size)) + bare_.substr(size);
  finish_value();
  return true;
}

Match LiteralReader::quote_at(const TurnInput& in, Quote& quote) const {
  for (const Marker& marker : syntax_.verbatim_quotes) {
    const Match match = in.at(marker);
    if (match == Match::no) continue;
    quote = {marker, true};
    return match;
  }
  const char c = in.rest().front();
  if (c != '"' && c != '\'') return Match::no;
  quote = {{std::string(1, c)}, false};
  if (!syntax_.is_python) return Match::yes;
  const std::string triple(3, c);
  const Match match = in.at(triple);
  if (match == Match::yes) quote.marker.text = triple;
  return match == Match::no ? Match::yes : match;
}

Match LiteralReader::end_at(const TurnInput& in, std::size_t offset) const {
  Match best = Match::no;
  for (const Marker& marker : syntax_.ends) {
    const Match match = in.at(marker, offset);
    if (match == Match::yes) return match;
    if (match == Match::maybe) best = match;
  }
  return best;
}

// The place of a token that ends the call, if one is there.
std::size_t LiteralReader::end_token(const TurnInput& in) const {
  const std::size_t token = in.next_token();
  return token < in.rest().size() && end_at(in, token) == Match::yes ? token : in.rest().size();
}

std::optional<std::size_t> LiteralReader::word(const TurnInput& in, std::string_view stops) const {
  const std::string_view text = in.rest();
  for (std::size_t at = 0; at < text.size(); ++at) {
    const Match end = end_at(in, at);
    if (end == Match::maybe) return std::nullopt;
    if (end == Match::yes || stops.find(text[at]) != std::string_view::npos) return at;
  }
  return in.has_ended() ? std::optional(text.size()) : std::nullopt;
}

void LiteralReader::start_element(std::string& json) {
  Frame& frame = frames_.back();
  if (frame.count == 0) gap_ = without_commas(gap_);
  if (frame.count > 0 && gap_.find(',') == std::string::npos) gap_.insert(0, ",");
  json += gap_;
  gap_.clear();
  ++frame.count;
}

// A closer that fits nothing open is dropped; one that fits further out closes what lies between.
void LiteralReader::close_with(char c, std::string& json) {
  const auto fits = [c](const Frame& frame) { return frame.closer == c; };
  const auto from_top = std::find_if(frames_.rbegin(), frames_.rend(), fits);
  if (from_top == frames_.rend()) return;
  for (auto left = from_top - frames_.rbegin(); left >= 0; --left) pop(json);
}

void LiteralReader::pop(std::string& json) {
  json += without_commas(gap_) + (frames_.back().is_object ? '}' : ']');
  gap_.clear();
  frames_.pop_back();
  finish_value();
}

void LiteralReader::finish_value() {
  bare_.clear();
  bare_depth_ = 0;
  state_ = frames_.empty() ? State::done : State::after;
}

void LiteralReader::close_all(std::string& json) {
  if (state_ == State::string) finish_string(json);
  if (state_ == State::sign) json += ":null";
  if (state_ == State::value) json += "null";
  while (!frames_.empty()) pop(json);
  state_ = State::done;
}

}  // namespace godwit::text
