// One value as a model writes it - JSON, a Python literal, Gemma's notation - read as it arrives and written as
// JSON at once. What is written is the beginning of valid JSON at any time: faults that models make (a backslash
// that escapes nothing, trailing commas, True, single quotes, bare words, missing closers) are mended in passing,
// so that a fragment that has left never has to be taken back.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/turn/turn_input.h"

namespace godwit::text {

struct LiteralSyntax {
  bool is_python = false;              // tuples, triple quotes, \x41 and the like in strings
  std::vector<Marker> verbatim_quotes = {};  // around strings without escapes (Gemma)
  std::vector<Marker> ends = {};            // what ends the call around the value: it also ends a value left open
};

class LiteralReader {
 public:
  enum class Shape {
    value,
    call_arguments,  // (a=1, b="x") of Python: becomes an object
  };
  // `syntax` must outlive the reader. `positions`: names of arguments that are given without one.
  explicit LiteralReader(const LiteralSyntax& syntax, Shape shape = Shape::value,
                         std::vector<std::string> positions = {});

  // Takes what belongs to the value and appends its JSON. True: the value is complete.
  bool read(TurnInput& in, std::string& json);
  // Whether the value was left open and closed here.
  bool was_cut() const { return was_cut_; }

 private:
  enum class State { value, element, key, sign, after, string, bare, done };
  struct Frame {
    char closer;  // as the model writes it
    bool is_object;
    int count = 0;
  };
  struct Quote {
    Marker marker;
    bool is_verbatim = false;
  };

  bool step(TurnInput& in, std::string& json);
  bool read_value(TurnInput& in, std::string& json);
  bool read_element(TurnInput& in, std::string& json);
  bool read_key(TurnInput& in, std::string& json);
  bool read_argument_name(TurnInput& in, std::string& json);
  bool read_sign(TurnInput& in, std::string& json);
  bool read_after(TurnInput& in, std::string& json);
  bool read_string(TurnInput& in, std::string& json);
  bool read_escape(TurnInput& in, std::string& json);
  bool read_python_escape(TurnInput& in, std::string& json);
  bool read_bare(TurnInput& in, std::string& json);

  Match quote_at(const TurnInput& in, Quote& quote) const;
  Match end_at(const TurnInput& in, std::size_t offset = 0) const;
  std::size_t end_token(const TurnInput& in) const;
  std::optional<std::size_t> word(const TurnInput& in, std::string_view stops) const;
  bool is_closer(char c) const { return c == '}' || c == ']' || (syntax_.is_python && c == ')'); }
  void open(char c, std::string& json);
  void start_element(std::string& json);
  void close_with(char c, std::string& json);
  bool has_arguments() const { return shape_ == Shape::call_arguments && frames_.size() == 1; }
  void pop(std::string& json);
  void close_all(std::string& json);
  void finish_string(std::string& json);
  void finish_value();

  const LiteralSyntax& syntax_;
  Shape shape_;
  std::vector<std::string> positions_;
  State state_ = State::value;
  std::vector<Frame> frames_;
  std::string gap_;   // white space and a comma that a next element needs, not written yet
  std::string bare_;  // a bare word so far
  int bare_depth_ = 0;
  Quote quote_;
  bool is_key_ = false, was_cut_ = false;
};

// The value that `text` holds, mended, as JSON; nullopt when something follows it.
std::optional<std::string> literal_to_json(std::string_view text);
// A bare word as JSON: numbers, true, false and null also in Python's spelling; else a string.
std::string bare_to_json(std::string_view word);
bool is_json_number(std::string_view text);
void append_json_escaped(std::string& json, std::string_view text);
std::string json_string(std::string_view text);

}  // namespace godwit::text
