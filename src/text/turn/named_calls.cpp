#include "text/turn/named_calls.h"

#include <algorithm>

#include "text/turn/stepped_calls.h"

namespace godwit::text {
namespace {

constexpr std::size_t kMaxName = 256, kMaxFence = 32;

bool is_name(std::string_view text) {
  return !text.empty() && text.find_first_of(" \n\r\t{}[]()<>\"'`,=") == std::string_view::npos;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \n\r\t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \n\r\t") - first + 1);
}

class NamedCalls final : public SteppedCalls {
 public:
  NamedCalls(std::shared_ptr<const NamedCallSyntax> syntax, const Tools& tools)
      : syntax_(std::move(syntax)), tools_(tools) {
    for (const Marker& marker : syntax_->name_ends) name_stops_.push_back(&marker);
    if (!syntax_->id_open.text.empty()) name_stops_.push_back(&syntax_->id_open);
    bracket_.text = std::string(1, syntax_->bracket);
    name_stops_.push_back(&bracket_);
    if (!syntax_->call_close.text.empty()) name_stops_.push_back(&syntax_->call_close);
  }

 private:
  enum class State { section, call, prefix, name, id, before_arguments, arguments, after };

  Step next(TurnInput& in, TurnOutput& out) override {
    switch (state_) {
      case State::section: return skip(in, syntax_->section_open, State::call);
      case State::call: return skip(in, syntax_->call_open, State::prefix);
      case State::prefix: return prefix(in);
      case State::name: return name(in);
      case State::id: return id(in);
      case State::before_arguments: return before_arguments(in, out);
      case State::arguments: return arguments(in, out);
      default: return after(in);
    }
  }

  // A marker that may be missing, and the space behind it.
  Step skip(TurnInput& in, const Marker& marker, State then) {
    const Match match = in.at(marker);
    if (match == Match::maybe) return Step::wait;
    const std::size_t size = match == Match::yes ? marker.text.size() : 0;
    const auto gap = in.space(size);
    if (!gap) return Step::wait;
    in.take(size + *gap);
    state_ = then;
    return Step::go;
  }

  // In a list the prefix opens the whole list.
  Step prefix(TurnInput& in) {
    const std::string& text = syntax_->name_prefix;
    const Match match = in.at(text);
    if (match == Match::maybe) return Step::wait;
    const bool is_needed = !text.empty() && (calls_ == 0 || syntax_->bracket != '(');
    if (match == Match::no && is_needed) return give_up(in);
    if (match == Match::yes) in.take(text.size());
    state_ = State::name;
    return Step::go;
  }

  Step name(TurnInput& in) {
    const auto end = in.find_within(name_stops_, kMaxName);
    if (end.marker == nullptr) return end.at > kMaxName ? give_up(in) : Step::wait;
    name_ = trimmed(in.rest().substr(0, end.at));
    if (!is_name(name_)) return give_up(in);
    const bool stays = end.marker == &bracket_ || end.marker == &syntax_->call_close;
    const std::size_t behind = end.at + (stays ? 0 : end.marker->text.size());
    if (syntax_->has_typed_names && name_ == "function" && !stays) {
      const auto gap = in.space(behind);
      if (!gap) return Step::wait;
      const char c = behind + *gap < in.rest().size() ? in.rest()[behind + *gap] : '\0';
      if (c != '{') {
        in.take(behind);
        return Step::go;  // the name proper
      }
    }
    in.take(behind);
    take_number();
    state_ = end.marker == &syntax_->id_open ? State::id : State::before_arguments;
    return Step::go;
  }

  void take_number() {
    if (!syntax_->has_numbered_names) return;
    id_ = name_;
    if (name_.starts_with("functions.")) name_.erase(0, 10);
    if (const std::size_t colon = name_.rfind(':'); colon != std::string::npos) name_.erase(colon);
  }

  Step id(TurnInput& in) {
    const auto end = in.find_within(name_stops_, kMaxName);
    if (end.marker == nullptr) return end.at > kMaxName ? give_up(in) : Step::wait;
    id_ = trimmed(in.rest().substr(0, end.at));
    in.take(end.at + (end.marker == &bracket_ || end.marker == &syntax_->call_close ? 0 : end.marker->text.size()));
    state_ = State::before_arguments;
    return Step::go;
  }

  Step before_arguments(TurnInput& in, TurnOutput& out) {
    const auto gap = in.space(0);
    if (!gap) return Step::wait;
    if (in.at("```", *gap) == Match::maybe) return Step::wait;
    if (in.at("```", *gap) == Match::yes && !has_fence_) {
      const std::size_t line = in.rest().find_first_of("\n{", *gap);
      if (line == std::string_view::npos && in.rest().size() <= *gap + kMaxFence) return Step::wait;
      if (line == std::string_view::npos || line > *gap + kMaxFence) return give_up(in);
      has_fence_ = true;
      in.take(line);
      return Step::go;
    }
    const Match close = in.at(syntax_->call_close, *gap);
    if (close == Match::maybe || (*gap == in.rest().size() && !in.has_ended())) return Step::wait;
    const bool has_arguments = in.rest().substr(*gap).starts_with(syntax_->bracket);
    if (!has_arguments && close != Match::yes) return give_up(in);
    if (syntax_->known_only && find_tool(tools_, name_) == nullptr) return give_up(in);
    in.take(*gap);
    in.release();
    out.begin_call(name_, id_);
    id_.clear();
    if (!has_arguments) {
      out.arguments("{}");
      return end_call(out);
    }
    const bool is_python = syntax_->bracket == '(';
    reader_ = std::make_unique<LiteralReader>(
        syntax_->literal, is_python ? LiteralReader::Shape::call_arguments : LiteralReader::Shape::value,
        is_python ? parameter_names(find_tool(tools_, name_)) : std::vector<std::string>());
    state_ = State::arguments;
    return Step::go;
  }

  Step arguments(TurnInput& in, TurnOutput& out) {
    std::string json;
    const bool is_complete = reader_->read(in, json);
    out.arguments(json);
    if (!is_complete) return Step::wait;
    if (reader_->was_cut()) out.cut_call();
    return end_call(out);
  }

  Step end_call(TurnOutput& out) {
    out.end_call();
    ++calls_;
    state_ = State::after;
    return out.is_over() ? Step::done : Step::go;
  }

  // Closers, one more call or the end of the section; white space stays where it is when none follows.
  Step after(TurnInput& in) {
    const auto gap = in.space(0);
    if (!gap) return Step::wait;
    const std::string_view text = in.rest();
    std::size_t at = *gap;
    if (has_fence_ && in.at("```", at) != Match::no) {
      if (in.at("```", at) == Match::maybe) return Step::wait;
      has_fence_ = false;
      in.take(at + 3);
      return Step::go;
    }
    const bool is_list = syntax_->bracket == '(';
    if (is_list && at < text.size() && text[at] == ']') {
      in.take(at + 1);
      return Step::go;
    }
    const bool has_comma = is_list && at < text.size() && text[at] == ',';
    for (const Marker* closer : {&syntax_->call_close, &syntax_->section_close}) {
      const Match match = in.at(*closer, at);
      if (match == Match::maybe) return Step::wait;
      if (match == Match::no) continue;
      in.take(at + closer->text.size());
      if (closer == &syntax_->section_close) return Step::done;
      return Step::go;
    }
    if (has_comma) {
      const auto next_gap = in.space(at + 1);
      if (!next_gap) return Step::wait;
      at += 1 + *next_gap;
    }
    Match call = in.at(syntax_->call_open, at);
    if (syntax_->call_open.text.empty() && has_comma) call = Match::yes;
    if (!syntax_->name_prefix.empty() && call == Match::no) call = in.at(syntax_->name_prefix, at);
    if (call == Match::maybe) return Step::wait;
    if (call != Match::yes) return Step::done;
    in.keep();
    in.take(at);
    state_ = State::call;
    return Step::go;
  }

  Step finish(TurnInput& in, TurnOutput& out) override {
    if (state_ == State::after) return Step::done;
    if (state_ != State::arguments) return give_up(in);
    return end_call(out);
  }

  const std::shared_ptr<const NamedCallSyntax> syntax_;
  const Tools& tools_;
  std::vector<const Marker*> name_stops_;
  Marker bracket_;
  State state_ = State::section;
  std::unique_ptr<LiteralReader> reader_;
  std::string name_, id_;
  bool has_fence_ = false;
};

}  // namespace

CallReaderMaker named_calls(NamedCallSyntax syntax) {
  return [syntax = std::make_shared<const NamedCallSyntax>(std::move(syntax))](const Tools& tools) {
    return std::make_unique<NamedCalls>(syntax, tools);
  };
}

}  // namespace godwit::text
