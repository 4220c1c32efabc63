#include "text/turn/xml_calls.h"

#include <algorithm>

#include "text/turn/coerce.h"
#include "text/turn/literal_reader.h"
#include "text/turn/stepped_calls.h"
#include "text/turn/xml_text.h"

namespace godwit::text {
namespace {

constexpr std::size_t kMaxName = 256, kMaxAttributes = 256;
constexpr std::string_view kCdata = "<![CDATA[";

class XmlCalls final : public SteppedCalls {
 public:
  XmlCalls(std::shared_ptr<const XmlCallSyntax> syntax, const Tools& tools)
      : syntax_(std::move(syntax)), tools_(tools) {
    literal_.ends = {{syntax_->call_close}};
    if (!syntax_->section_close.text.empty()) literal_.ends.push_back(syntax_->section_close);
  }

 private:
  enum class State { open, name, attributes, next, body, key, before_value, value, after };

  Step next(TurnInput& in, TurnOutput& out) override {
    switch (state_) {
      case State::open: return open(in);
      case State::name: return name(in, out);
      case State::attributes: return attributes(in, out);
      case State::next: return argument(in, out);
      case State::body: return body(in, out);
      case State::key: return key(in, out);
      case State::before_value: return before_value(in, out);
      case State::value: return value(in, out);
      default: return after(in);
    }
  }

  Step open(TurnInput& in) {
    std::size_t at = 0;
    if (in.at(syntax_->section_open) == Match::maybe) return Step::wait;
    if (in.at(syntax_->section_open) == Match::yes) {
      at = syntax_->section_open.text.size();
      const auto gap = in.space(at);
      if (!gap) return Step::wait;
      at += *gap;
    }
    const Match match = in.at(syntax_->call_open, at);
    if (match != Match::yes) return match == Match::maybe ? Step::wait : Step::failed;
    in.take(at + syntax_->call_open.text.size());
    state_ = State::name;
    return Step::go;
  }

  Step name(TurnInput& in, TurnOutput& out) {
    const std::string_view text = in.rest();
    const bool is_line = syntax_->name_end.empty();
    const std::size_t end = is_line ? text.find_first_of("\n<") : text.find_first_of(syntax_->name_end + "\n<");
    if (end == std::string_view::npos) return text.size() > kMaxName ? give_up(in) : Step::wait;
    name_ = xml_name(text.substr(0, end));
    if (name_.empty() || end > kMaxName) return give_up(in);
    if (is_line) {
      in.take(end);
      return begin(in, out);
    }
    if (!text.substr(end).starts_with(syntax_->name_end)) return give_up(in);
    in.take(end + syntax_->name_end.size());
    if (syntax_->name_end == ">") return begin(in, out);
    state_ = State::attributes;
    return Step::go;
  }

  Step attributes(TurnInput& in, TurnOutput& out) {
    const std::size_t end = in.rest().find_first_of("><");
    if (end > kMaxAttributes) return in.rest().size() > kMaxAttributes ? give_up(in) : Step::wait;
    if (in.rest()[end] == '<') return give_up(in);
    in.take(end + 1);
    return begin(in, out);
  }

  Step begin(TurnInput& in, TurnOutput& out) {
    in.release();
    out.begin_call(name_);
    tool_ = find_tool(tools_, name_);
    count_ = 0;
    has_body_ = false;
    state_ = State::next;
    return Step::go;
  }

  // An argument, or the end of the call.
  Step argument(TurnInput& in, TurnOutput& out) {
    const auto gap = in.space(0);
    if (!gap) return Step::wait;
    in.take(*gap);
    for (const std::string* tag_text : {&syntax_->key_open, &syntax_->call_close}) {
      const std::string& tag = *tag_text;
      const Match match = in.at(tag);
      if (match == Match::maybe) return Step::wait;
      if (match == Match::no) continue;
      in.take(tag.size());
      if (tag == syntax_->call_close) return end_call(out);
      state_ = State::key;
      return Step::go;
    }
    const Match section = in.at(syntax_->section_close);
    if (section == Match::maybe || in.is_empty()) return Step::wait;
    if (in.rest().front() == '{' && count_ == 0 && !has_body_) {  // JSON in place of tags
      body_ = std::make_unique<LiteralReader>(literal_);
      state_ = State::body;
      return Step::go;
    }
    if (in.has_ended() && syntax_->call_close.starts_with(in.rest())) in.take(in.rest().size());
    return end_call(out);  // the call's own closer was forgotten
  }

  Step body(TurnInput& in, TurnOutput& out) {
    std::string json;
    const bool is_complete = body_->read(in, json);
    out.arguments(json);
    if (!is_complete) return Step::wait;
    if (body_->was_cut()) out.cut_call();
    has_body_ = true;
    state_ = State::next;
    return Step::go;
  }

  Step key(TurnInput& in, TurnOutput& out) {
    const std::size_t end = in.rest().find(syntax_->key_end);
    // A name that is too long is none, whether or not its end is there yet.
    if (end > kMaxName) return in.rest().size() < kMaxName + syntax_->key_end.size() ? Step::wait : end_call(out);
    key_ = unquoted(in.rest().substr(0, end));
    attributes_.clear();
    in.take(end + syntax_->key_end.size());
    state_ = State::before_value;
    return Step::go;
  }

  Step before_value(TurnInput& in, TurnOutput& out) {
    const std::string& opener = syntax_->value_open;
    if (!opener.empty() && !is_value_open_) {
      const std::size_t end = in.rest().find(opener);
      const bool is_there = end <= kMaxAttributes;
      if (!is_there && in.rest().size() < kMaxAttributes + opener.size()) return Step::wait;
      if (is_there) {
        attributes_ = in.rest().substr(0, end);
        in.take(end + opener.size());
      }
      is_value_open_ = true;
    }
    if (syntax_->has_cdata && in.at(kCdata) == Match::maybe) return Step::wait;
    if (syntax_->strips_newline && in.is_empty()) return Step::wait;
    is_cdata_ = syntax_->has_cdata && in.at(kCdata) == Match::yes;
    if (is_cdata_) in.take(kCdata.size());
    if (syntax_->strips_newline && in.rest().front() == '\n') in.take(1);
    is_value_open_ = false;
    schema_ = parameter_schema(tool_, key_);
    is_text_ = attributes_.find("string=\"false\"") == std::string::npos &&
               (attributes_.find("string=\"true\"") != std::string::npos || is_text_schema(schema_));
    raw_.clear();
    out.arguments((count_++ > 0 ? ", " : "{") + json_string(key_) + ": " + (is_text_ ? "\"" : ""));
    state_ = State::value;
    return Step::go;
  }

  Step value(TurnInput& in, TurnOutput& out) {
    const XmlValueEnd end = find_value_end(in, *syntax_, is_cdata_);
    std::size_t size = end.at;
    const bool has_newline = syntax_->strips_newline && size > 0 && in.rest()[size - 1] == '\n';
    if (has_newline && (end.closer || !in.has_ended())) --size;
    std::string text(in.rest().substr(0, size));
    if (syntax_->has_cdata && !is_cdata_) size = decode_entities(text, end.closer.has_value() || in.has_ended());
    put(text, out);
    if (!end.closer) {
      in.take(size);
      return Step::wait;
    }
    in.take(end.at + *end.closer);
    finish_value(out);
    return Step::go;
  }

  void put(const std::string& text, TurnOutput& out) {
    if (!is_text_) {
      raw_ += text;
      return;
    }
    std::string json;
    append_json_escaped(json, text);
    out.arguments(json);
  }

  void finish_value(TurnOutput& out) {
    if (is_text_)
      out.arguments("\"");
    else
      out.arguments(attributes_.find("string=\"false\"") != std::string::npos ? any_to_json(raw_)
                                                                             : text_to_json(raw_, schema_));
    state_ = State::next;
  }

  Step end_call(TurnOutput& out) {
    if (!has_body_) out.arguments(count_ > 0 ? "}" : "{}");
    out.end_call();
    ++calls_;
    state_ = State::after;
    return out.is_over() ? Step::done : Step::go;
  }

  // One more call or the end of the section; white space stays where it is when neither follows.
  Step after(TurnInput& in) {
    const auto gap = in.space(0);
    if (!gap) return Step::wait;
    const Match call = in.at(syntax_->call_open, *gap), close = in.at(syntax_->section_close, *gap);
    if (call == Match::maybe || close == Match::maybe) return Step::wait;
    if (close == Match::yes) in.take(*gap + syntax_->section_close.text.size());
    if (call != Match::yes || close == Match::yes) return Step::done;
    in.keep();
    in.take(*gap);
    state_ = State::open;
    return Step::go;
  }

  Step finish(TurnInput& in, TurnOutput& out) override {
    switch (state_) {
      case State::open:
      case State::name:
      case State::attributes: return give_up(in);
      case State::after: return Step::done;
      case State::value: finish_value(out); [[fallthrough]];
      case State::key:
      case State::before_value: out.cut_call(); break;
      case State::body:
      case State::next: break;
    }
    end_call(out);
    return Step::done;
  }

  const std::shared_ptr<const XmlCallSyntax> syntax_;
  const Tools& tools_;
  State state_ = State::open;
  std::string name_, key_, attributes_, raw_;
  const ToolSpec* tool_ = nullptr;
  LiteralSyntax literal_;
  std::unique_ptr<LiteralReader> body_;
  Json schema_;
  bool has_body_ = false, is_value_open_ = false, is_cdata_ = false, is_text_ = false;
  int count_ = 0;
};

}  // namespace

CallReaderMaker xml_calls(XmlCallSyntax syntax) {
  return [syntax = std::make_shared<const XmlCallSyntax>(std::move(syntax))](const Tools& tools) {
    return std::make_unique<XmlCalls>(syntax, tools);
  };
}

}  // namespace godwit::text
