// Messages of the Harmony format (openai/harmony, "Message format"): header, channel, body. The prompt ends with
// "<|start|>assistant", so that an answer begins inside a header.
#include <algorithm>
#include <array>

#include "text/turn/literal_reader.h"
#include "text/turn/tool_formats.h"
#include "text/turn/turn_machine.h"

namespace godwit::text {
namespace {

constexpr std::size_t kMaxHeader = 1024;

// Of the one that the byte at `at` belongs to.
std::size_t begin_of_character(std::string_view text, std::size_t at) {
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

// The word behind `mark`, up to white space or a marker.
std::string_view word_behind(std::string_view header, std::string_view mark) {
  const std::size_t at = header.find(mark);
  if (at == std::string_view::npos) return {};
  const std::string_view word = header.substr(at + mark.size());
  return word.substr(0, word.find_first_of(" \n\r\t<"));
}

class HarmonyMachine final : public TurnMachine {
 public:
  HarmonyMachine(const TurnFormat& format, const Tools& tools, bool in_reasoning)
      : tools_(tools),
        start_(marker_of(format, "<|start|>")),
        message_(marker_of(format, "<|message|>")),
        state_(in_reasoning ? State::reasoning : State::start) {
    for (const char* text : {"<|end|>", "<|call|>", "<|return|>"}) ends_.push_back(marker_of(format, text));
    for (const char* text : {"<|channel|>", "<|constrain|>"}) header_marks_.push_back(marker_of(format, text));
    for (const Marker& end : ends_) body_ends_.push_back(&end);
    body_ends_.push_back(&start_);
    literal_.ends = ends_;
    literal_.ends.push_back(start_);
  }

  void run(TurnInput& in, TurnOutput& out) override {
    while (!out.is_over() && step(in, out)) {
    }
  }

  bool is_in_reasoning() const override { return state_ == State::reasoning; }

 private:
  enum class State { start, header, reasoning, content, before_call, call };

  bool step(TurnInput& in, TurnOutput& out) {
    switch (state_) {
      case State::start: return start(in);
      case State::header: return header(in, out);
      case State::before_call: return before_call(in, out);
      case State::call: return call(in, out);
      default: return body(in, out);
    }
  }

  // Terminators are passed over; a header begins with one of its marks or a recipient, anything else is an answer
  // without one.
  bool start(TurnInput& in) {
    if (in.is_empty()) return false;
    std::vector<const Marker*> passed = body_ends_;
    std::vector<Marker> heads = header_marks_;
    heads.push_back(message_);
    heads.push_back({"to="});
    heads.push_back({" to="});
    bool is_open = false;
    for (const Marker* marker : passed) {
      const Match match = in.at(*marker);
      is_open |= match == Match::maybe;
      if (match != Match::yes) continue;
      in.take(marker->text.size());
      if (marker == &start_) state_ = State::header;
      return true;
    }
    for (const Marker& head : heads) {
      const Match match = in.at(head);
      is_open |= match == Match::maybe;
      if (match == Match::yes) {
        state_ = State::header;
        return true;
      }
    }
    if (is_open) return false;
    state_ = State::content;
    return true;
  }

  bool header(TurnInput& in, TurnOutput& out) {
    std::vector<const Marker*> stops = body_ends_;
    stops.push_back(&message_);
    auto found = in.find_within(stops, kMaxHeader);
    if (found.marker == nullptr && !in.has_ended() && found.at <= kMaxHeader) return false;
    if (found.at > kMaxHeader) found.at = begin_of_character(in.rest(), kMaxHeader);
    const std::string head(in.rest().substr(0, found.at));
    if (found.marker != &message_) {  // no body: what can be no header is text
      const bool is_text = head.find("<|") == std::string::npos && head.find("to=") == std::string::npos;
      if (is_text && head != "assistant") out.content(head);
      in.take(found.at);
      state_ = State::start;
      return !in.is_empty();
    }
    in.take(found.at + message_.text.size());
    begin_body(head);
    return true;
  }

  // The recipient stands in front of the channel or behind it.
  void begin_body(std::string_view head) {
    const std::string_view channel = word_behind(head, "<|channel|>");
    std::string_view recipient = word_behind(head, "to=");
    const bool is_function = recipient.starts_with("functions.");
    if (is_function) recipient.remove_prefix(std::string_view("functions.").size());
    name_ = recipient;
    if (!tools_.empty() && !name_.empty() && (is_function || find_tool(tools_, name_) != nullptr))
      state_ = State::before_call;
    else if (channel == "analysis")
      state_ = State::reasoning;  // calls of tools that are not ours included
    else
      state_ = State::content;
  }

  bool body(TurnInput& in, TurnOutput& out) {
    const auto found = in.find(body_ends_);
    const std::string_view text = in.rest().substr(0, found.at);
    if (state_ == State::reasoning)
      out.reasoning(text);
    else
      out.content(text);
    in.take(found.at);
    if (found.marker == nullptr) return false;
    state_ = State::start;
    return true;
  }

  bool before_call(TurnInput& in, TurnOutput& out) {
    const auto gap = in.space(0);
    if (!gap || (in.rest().size() == *gap && !in.has_ended())) return false;
    in.take(*gap);
    out.begin_call(name_);
    is_object_ = in.rest().starts_with('{');
    raw_.clear();
    reader_ = std::make_unique<LiteralReader>(literal_);
    state_ = State::call;
    return true;
  }

  bool call(TurnInput& in, TurnOutput& out) {
    if (is_object_) {
      std::string json;
      const bool is_complete = reader_->read(in, json);
      out.arguments(json);
      if (!is_complete) return false;
      if (reader_->was_cut()) out.cut_call();
    } else {  // code, or nothing
      const auto found = in.find(body_ends_);
      raw_ += in.rest().substr(0, found.at);
      in.take(found.at);
      if (found.marker == nullptr && !in.has_ended()) return false;
      if (found.marker == nullptr) out.cut_call();
      out.arguments(raw_.empty() ? "{}" : json_string(raw_));
    }
    out.end_call();
    state_ = State::start;
    return true;
  }

  const Tools& tools_;
  const Marker start_, message_;
  std::vector<Marker> ends_, header_marks_;
  std::vector<const Marker*> body_ends_;
  LiteralSyntax literal_;
  State state_;
  std::string name_, raw_;
  bool is_object_ = false;
  std::unique_ptr<LiteralReader> reader_;
};

}  // namespace

std::unique_ptr<TurnMachine> harmony_machine(const TurnFormat& format, const Tools& tools, bool in_reasoning) {
  return std::make_unique<HarmonyMachine>(format, tools, in_reasoning);
}

}  // namespace godwit::text
