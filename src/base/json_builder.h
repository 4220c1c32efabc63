// Builds a Json from the events of nlohmann's parser. Its own builder looks for each new key among all keys
// before it, so an object of n keys takes n * n steps; a request body could keep a processor busy for hours.
// Here it is n. Of two equal keys the last value counts, at the place of the first, as in Python, unless they are
// refused.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/json.h"

namespace godwit {

class JsonBuilder {
 public:
  enum class EqualKeys { last_counts, refused };
  explicit JsonBuilder(EqualKeys equal_keys) : equal_keys_(equal_keys) {}

  Json take() { return std::move(root_); }
  const std::string& error() const { return error_; }

  // The parser's events; false ends it.
  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(Json::number_integer_t value) { return add(value); }
  bool number_unsigned(Json::number_unsigned_t value) { return add(value); }
  bool number_float(Json::number_float_t value, const std::string&) { return add(value); }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(Json::binary_t&) { return false; }  // does not occur in text
  bool start_object(std::size_t) { return open(Json::object()); }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& name);
  bool parse_error(std::size_t, const std::string&, const Json::exception& what);

 private:
  // An open object or array. It lies in the last element of its parent, which cannot grow and move it
  // meanwhile.
  struct Frame {
    Json* container = nullptr;
    std::size_t slot = 0;                                 // of the key whose value comes next
    std::unordered_map<std::string, std::size_t> places;  // of the keys, once there are many
  };

  std::size_t place_of(Frame& frame, const std::string& name);
  Json& put(Json value);
  bool add(Json value);
  bool open(Json empty);
  bool close();

  EqualKeys equal_keys_;
  Json root_;
  std::vector<Frame> frames_;
  std::string error_;
};

}  // namespace godwit
