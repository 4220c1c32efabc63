#include "text/turn/json_calls.h"

#include <algorithm>

#include "text/turn/literal_reader.h"
#include "text/turn/stepped_calls.h"

namespace godwit::text {
namespace {

bool is_arguments(std::string_view key) {
  return key == "arguments" || key == "parameters" || key == "args" || key == "input";
}

bool is_wrapper(std::string_view key) {
  return key == "function" || key == "tool_call" || key == "function_call";
}

std::string text_of(const std::string& json) {
  const Json value = Json::parse(json, nullptr, false);
  return value.is_string() ? value.get<std::string>() : json;
}

// Arguments that did not come as an object: written as a string, or absent.
std::string object_of(const std::string& json) {
  if (json.empty() || json == "null") return "{}";
  if (!json.starts_with('"')) return json;
  const std::string text = text_of(json);
  const std::size_t start = text.find_first_not_of(" \n\r\t");
  if (start == std::string::npos) return "{}";
  return text[start] == '{' ? literal_to_json(text).value_or(json) : json;
}

class JsonCalls final : public SteppedCalls {
 public:
  JsonCalls(std::shared_ptr<const JsonCallSyntax> syntax, const Tools& tools)
      : syntax_(std::move(syntax)), tools_(tools) {
    if (!syntax_->close.text.empty()) literal_.ends.push_back(syntax_->close);
  }

 private:
  enum class State { open, before, item, field, sign, value, collect, arguments, response, after };

  Step next(TurnInput& in, TurnOutput& out) override {
    switch (state_) {
      case State::open:
        in.take(syntax_->open.text.size());
        state_ = State::before;
        return Step::go;
      case State::collect: return collect(in);
      case State::arguments: return stream_arguments(in, out);
      case State::response: return stream_response(in, out);
      case State::after: return after(in);
      default: break;
    }
    const auto gap = in.space(0);
    if (!gap || in.rest().size() == *gap) return Step::wait;
    in.take(*gap);
    switch (state_) {
      case State::before: return before(in);
      case State::item: return item(in, out);
      case State::field: return field(in, out);
      case State::sign: return sign(in, out);
      default: return value(in, out);
    }
  }

  Step before(TurnInput& in) {
    const Match fence = in.at("```");
    if (fence == Match::maybe) return Step::wait;
    if (fence == Match::yes) {
      const std::size_t end = in.rest().find('\n');
      if (end == std::string_view::npos && in.rest().size() <= kMaxFence) return Step::wait;
      if (end > kMaxFence) return Step::failed;
      in.take(end);
      return Step::go;
    }
    if (in.rest().front() == '[') {
      in.take(1);
      is_list_ = true;
    }
    state_ = State::item;
    return Step::go;
  }

  Step item(TurnInput& in, TurnOutput& out) {
    const char c = in.rest().front();
    if (c == '{') {
      if (calls_ > 0) in.keep();
      in.take(1);
      depth_ = 1;
      name_ = id_ = held_ = "";
      extras_.clear();
      is_open_ = has_arguments_ = is_cut_ = false;
      state_ = State::field;
    } else if (is_list_ && (c == ',' || c == ']')) {
      in.take(1);
      if (c == ']') state_ = State::after;
    } else if (calls_ > 0) {
      state_ = State::after;
    } else {
      return leave_off(in, out);
    }
    return Step::go;
  }

  Step field(TurnInput& in, TurnOutput& out) {
    const char c = in.rest().front();
    if (c == '"') {
      begin_collecting(Target::key);
    } else if (c == ',' || c == '}') {
      in.take(1);
      if (c == '}' && --depth_ == 0) return finish_object(in, out);
    } else if (is_open_ && in.at(syntax_->close) != Match::no) {
      if (in.at(syntax_->close) == Match::maybe) return Step::wait;
      return finish_object(in, out);  // the object's own closer was forgotten
    } else {
      return leave_off(in, out);
    }
    return Step::go;
  }

  Step sign(TurnInput& in, TurnOutput& out) {
    if (in.rest().front() != ':') return leave_off(in, out);
    in.take(1);
    state_ = State::value;
    return Step::go;
  }

  Step value(TurnInput& in, TurnOutput& out) {
    const char c = in.rest().front();
    if (is_wrapper(key_) && c == '{') {
      in.take(1);
      ++depth_;
      state_ = State::field;
    } else if (syntax_->is_generic && depth_ == 1 && key_ == "tool_calls" && c == '[') {
      in.take(1);
      is_list_ = true;
      state_ = State::item;
    } else if (syntax_->is_generic && depth_ == 1 && key_ == "response" && calls_ == 0) {
      in.release();
      is_answered_ = true;
      reader_ = std::make_unique<LiteralReader>(literal_);
      is_text_ = c == '"';
      state_ = State::response;
    } else if (is_arguments(key_) && c == '{' && !name_.empty() && !has_arguments_) {
      if (!open_call(in, out)) return leave_off(in, out);
      reader_ = std::make_unique<LiteralReader>(literal_);
      state_ = State::arguments;
    } else {
      begin_collecting(key_ == "name" || is_wrapper(key_) ? Target::name
                       : key_ == "id"                     ? Target::id
                       : is_arguments(key_)               ? Target::arguments
                                                          : Target::extra);
    }
    return Step::go;
  }

  enum class Target { key, name, id, arguments, extra };

  void begin_collecting(Target target) {
    target_ = target;
    collected_.clear();
    reader_ = std::make_unique<LiteralReader>(literal_);
    state_ = State::collect;
  }

  Step collect(TurnInput& in) {
    if (!reader_->read(in, collected_)) return Step::wait;
    is_cut_ |= reader_->was_cut();
    state_ = target_ == Target::key ? State::sign : State::field;
    switch (target_) {
      case Target::key: key_ = text_of(collected_); break;
      case Target::name:
        if (collected_.starts_with('"')) name_ = text_of(collected_);
        break;
      case Target::id: id_ = text_of(collected_); break;
      case Target::arguments:
        held_ = object_of(collected_);
        has_arguments_ = true;
        break;
      case Target::extra:
        if (key_ != "type") extras_ += (extras_.empty() ? "" : ", ") + json_string(key_) + ": " + collected_;
    }
    return Step::go;
  }

  Step stream_arguments(TurnInput& in, TurnOutput& out) {
    std::string json;
    const bool is_complete = reader_->read(in, json);
    out.arguments(json);
    if (!is_complete) return Step::wait;
    has_arguments_ = true;
    if (reader_->was_cut()) out.cut_call();
    state_ = State::field;
    return Step::go;
  }

  // The reader cuts strings between characters, so that a piece of one is a string itself.
  Step stream_response(TurnInput& in, TurnOutput& out) {
    std::string json;
    const bool is_complete = reader_->read(in, json);
    if (is_text_) {
      if (!is_text_open_ && !json.empty()) {
        json.erase(0, 1);
        is_text_open_ = true;
      }
      if (is_complete) json.pop_back();
      json = text_of('"' + json + '"');
    }
    out.content(json);
    if (!is_complete) return Step::wait;
    state_ = State::after;
    return Step::go;
  }

  bool open_call(TurnInput& in, TurnOutput& out) {
    if (name_.empty() || (syntax_->known_only && find_tool(tools_, name_) == nullptr)) return false;
    in.release();
    out.begin_call(name_, id_);
    is_open_ = true;
    return true;
  }

  Step finish_object(TurnInput& in, TurnOutput& out) {
    if (!is_open_) {
      if (!open_call(in, out)) return leave_off(in, out);
      out.arguments(has_arguments_ ? held_ : "{" + extras_ + "}");
    }
    out.end_call();
    ++calls_;
    state_ = is_list_ ? State::item : State::after;
    return out.is_over() ? Step::done : Step::go;
  }

  // Closers, or one more object; white space stays where it is when neither follows.
  Step after(TurnInput& in) {
    if (calls_ == 0 && !is_answered_) return Step::failed;  // an empty list
    const std::string_view text = in.rest();
    std::size_t at = 0, separator = std::string_view::npos;
    for (;;) {
      while (at < text.size() && (is_space(text[at]) || text[at] == '}' || text[at] == ']')) ++at;
      if (in.at("```", at) == Match::yes)
        at += 3;
      else if (at < text.size() && (text[at] == ';' || text[at] == ',') && separator == std::string_view::npos)
        separator = at++;
      else
        break;
    }
    const Match close = in.at(syntax_->close, at);
    if ((at == text.size() && !in.has_ended()) || in.at("```", at) == Match::maybe || close == Match::maybe)
      return Step::wait;
    if (close == Match::yes) {
      in.take(at + syntax_->close.text.size());
      return Step::done;
    }
    if (at < text.size() && text[at] == '{' && !is_list_) {
      in.take(at);
      state_ = State::item;
      return Step::go;
    }
    in.take(text.substr(0, std::min(at, separator)).find_last_not_of(" \n\r\t") + 1);
    return Step::done;
  }

  Step leave_off(TurnInput& in, TurnOutput& out) {
    if (is_open_ && depth_ > 0) {  // a call that has left cannot be taken back
      out.end_call();
      ++calls_;
      state_ = State::after;
      return out.is_over() ? Step::done : Step::go;
    }
    return give_up(in);
  }

  Step finish(TurnInput& in, TurnOutput& out) override {
    if (state_ == State::after || state_ == State::response) return Step::done;  // `after` has looked already
    if (state_ == State::item && calls_ > 0) return Step::done;
    const bool is_whole = state_ == State::field && !is_cut_ && (is_open_ || has_arguments_);
    if (is_whole || is_open_) {
      const Step step = finish_object(in, out);
      return step == Step::go ? Step::done : step;
    }
    return leave_off(in, out);
  }

  static constexpr std::size_t kMaxFence = 32;

  const std::shared_ptr<const JsonCallSyntax> syntax_;
  const Tools& tools_;
  LiteralSyntax literal_;
  State state_ = State::open;
  Target target_ = Target::key;
  std::unique_ptr<LiteralReader> reader_;
  std::string key_, collected_;
  std::string name_, id_, held_, extras_;  // of the object being read
  bool is_open_ = false, has_arguments_ = false, is_cut_ = false;
  bool is_list_ = false, is_answered_ = false, is_text_ = false, is_text_open_ = false;
  int depth_ = 0;
};

}  // namespace

CallReaderMaker json_calls(JsonCallSyntax syntax) {
  return [syntax = std::make_shared<const JsonCallSyntax>(std::move(syntax))](const Tools& tools) {
    return std::make_unique<JsonCalls>(syntax, tools);
  };
}

}  // namespace godwit::text
