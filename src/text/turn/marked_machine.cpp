#include <algorithm>

#include "text/turn/tool_formats.h"
#include "text/turn/turn_machine.h"

namespace godwit::text {
namespace {

constexpr std::string_view kNewlines = "\r\n";

std::size_t without_newlines(std::string_view text, std::size_t size) {
  return text.substr(0, size).find_last_not_of(kNewlines) + 1;
}

class MarkedMachine final : public TurnMachine {
 public:
  MarkedMachine(const TurnFormat& format, const Tools& tools, bool in_reasoning)
      : tools_(tools),
        open_(marker_of(format, format.reasoning_open)),
        close_(marker_of(format, format.reasoning_close)),
        state_(in_reasoning && !close_.text.empty() ? State::reasoning : State::content) {
    if (tools.empty()) return;
    openers_ = call_openers(format);
    for (const std::string_view text : stray_closers(format.tools)) strays_.push_back(marker_of(format, text));
  }

  void run(TurnInput& in, TurnOutput& out) override {
    while (!out.is_over() && step(in, out)) {
    }
  }

  bool is_in_reasoning() const override { return state_ == State::reasoning; }

 private:
  enum class State { content, reasoning, calls };

  bool step(TurnInput& in, TurnOutput& out) {
    switch (state_) {
      case State::reasoning: return reasoning(in, out);
      case State::calls: return calls(in, out);
      default: return content(in, out);
    }
  }

  bool reasoning(TurnInput& in, TurnOutput& out) {
    if (!has_begun_) {
      in.take(std::min(in.rest().find_first_not_of(kNewlines), in.rest().size()));
      if (in.is_empty()) return false;
      const Match again = in.at(open_);  // also written by the model, where the prompt has it
      if (again == Match::maybe) return false;
      has_begun_ = true;
      if (again == Match::yes) {
        in.take(open_.text.size());
        has_begun_ = false;
        return true;
      }
    }
    const Marker* const markers[] = {&close_};
    const auto found = in.find(markers);
    const bool holds = found.marker != nullptr || !in.has_ended();
    const std::size_t size = holds ? without_newlines(in.rest(), found.at) : found.at;
    out.reasoning(in.rest().substr(0, size));
    in.take(found.marker ? found.at + close_.text.size() : size);
    if (found.marker == nullptr) return false;
    end_reasoning();
    return true;
  }

  void end_reasoning() {
    has_reasoned_ = true;
    state_ = State::content;
    is_boundary_ = drops_newlines_ = true;
  }

  bool content(TurnInput& in, TurnOutput& out) {
    if (drops_newlines_) {
      in.take(std::min(in.rest().find_first_not_of(kNewlines), in.rest().size()));
      drops_newlines_ = in.is_empty();
    }
    if (in.is_empty()) return false;
    const auto gap = in.space(0);
    if (is_boundary_ && !gap) return false;
    const std::size_t start = is_boundary_ ? *gap : 0;
    if (is_boundary_ && start == in.rest().size()) return end_of_space(in, out);
    if (const auto opened = open_at_start(in, start)) return *opened;
    const auto found = find(in, start);
    const std::size_t size = text_before(in, found, start);
    put(in, out, size);
    if (found.marker == nullptr) return false;
    enter(in, found, found.at - size);
    return true;
  }

  // White space alone at the end is content only where there is nothing else.
  bool end_of_space(TurnInput& in, TurnOutput& out) {
    if (!has_reasoned_ && out.calls() == 0) out.content(in.rest());
    in.take(in.rest().size());
    return false;
  }

  // Calls that only the beginning of an answer can be. nullopt: none.
  std::optional<bool> open_at_start(TurnInput& in, std::size_t start) {
    if (!is_start_) return std::nullopt;
    std::optional<bool> waits;
    const CallOpener* best = nullptr;
    for (const CallOpener& opener : openers_) {
      if (!opener.only_at_start) continue;
      const Match match = in.at(opener.marker, start);
      if (match == Match::maybe) waits = false;
      if (match == Match::yes && (!best || opener.marker.text.size() > best->marker.text.size())) best = &opener;
    }
    if (waits || best == nullptr) return waits;
    begin_calls(in, *best, start);
    return true;
  }

  TurnInput::Found find(const TurnInput& in, std::size_t start) const {
    std::vector<const Marker*> markers = {&open_, &close_};
    for (const CallOpener& opener : openers_)
      if (!opener.only_at_start) markers.push_back(&opener.marker);
    for (const Marker& stray : strays_) markers.push_back(&stray);
    for (std::size_t from = 0;;) {
      const auto found = in.find(markers, from);
      if (found.marker == nullptr || counts(in, found, start)) return found;
      from = found.at + 1;
    }
  }

  // Text that spells a marker of the reasoning is quoted, where the vocabulary has a token for it; at the beginning it
  // may be a fine-tune that lost the token. Closers of calls mean something directly behind a call only.
  bool counts(const TurnInput& in, const TurnInput::Found& found, std::size_t start) const {
    const bool at_boundary = is_boundary_ && found.at == start;
    const bool is_stray = std::ranges::any_of(strays_, [&](const Marker& stray) { return &stray == found.marker; });
    if (is_stray) return at_boundary && is_behind_call_;
    if (found.marker == &close_ && has_reasoned_) return in.is_token(found.at);
    const bool is_reasoning = found.marker == &open_ || found.marker == &close_;
    return !is_reasoning || found.marker->id < 0 || at_boundary || in.is_token(found.at);
  }

  // How much in front of the marker, or of what may become one, is content. Line breaks around markers are layout.
  std::size_t text_before(const TurnInput& in, const TurnInput::Found& found, std::size_t start) const {
    if (is_boundary_ && found.at == start) return 0;
    if (found.marker == nullptr && (in.has_ended() || (openers_.empty() && open_.text.empty()))) return found.at;
    return without_newlines(in.rest(), found.at);
  }

  void put(TurnInput& in, TurnOutput& out, std::size_t size) {
    if (size == 0) return;
    out.content(in.rest().substr(0, size));
    in.take(size);
    is_boundary_ = is_start_ = is_behind_call_ = false;
  }

  void enter(TurnInput& in, const TurnInput::Found& found, std::size_t gap) {
    for (const CallOpener& opener : openers_)
      if (&opener.marker == found.marker) return begin_calls(in, opener, gap);
    in.take(gap + found.marker->text.size());
    if (found.marker == &open_) {
      state_ = State::reasoning;
      has_begun_ = false;
    } else if (found.marker == &close_) {
      end_reasoning();
    }
  }

  void begin_calls(TurnInput& in, const CallOpener& opener, std::size_t gap) {
    opener_ = &opener;
    gap_ = gap;
    tried_ = 0;
    state_ = State::calls;
    in.keep();
    in.take(gap_);
    reader_ = opener.readers[0](tools_);
  }

  bool calls(TurnInput& in, TurnOutput& out) {
    const auto progress = reader_->read(in, out);
    if (progress == CallReader::Progress::wait) return false;
    if (progress == CallReader::Progress::failed) {
      in.back();
      if (++tried_ < opener_->readers.size()) {
        in.keep();
        in.take(gap_);
        reader_ = opener_->readers[tried_](tools_);
        return true;
      }
      state_ = State::content;
      put(in, out, gap_ + opener_->marker.text.size());
      return true;
    }
    in.release();
    reader_.reset();
    state_ = State::content;
    is_boundary_ = is_behind_call_ = true;
    is_start_ = false;
    return true;
  }

  const Tools& tools_;
  const Marker open_, close_;
  std::vector<CallOpener> openers_;
  std::vector<Marker> strays_;
  State state_;
  std::unique_ptr<CallReader> reader_;
  const CallOpener* opener_ = nullptr;  // what reader_ began at
  std::size_t gap_ = 0, tried_ = 0;
  bool is_start_ = true;         // nothing but reasoning has come
  bool is_boundary_ = true;      // nothing but white space since the start, a call or reasoning
  bool is_behind_call_ = false;  // since a call
  bool has_begun_ = false;       // the reasoning has
  bool has_reasoned_ = false, drops_newlines_ = false;
};

}  // namespace

std::unique_ptr<TurnMachine> marked_machine(const TurnFormat& format, const Tools& tools, bool in_reasoning) {
  return std::make_unique<MarkedMachine>(format, tools, in_reasoning);
}

}  // namespace godwit::text
