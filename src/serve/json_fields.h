// Untrusted JSON becomes typed values here and nowhere else. A field that is null counts as absent; an error
// names the field with its path ("stream_options.include_usage") and the value that was sent.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/json.h"

namespace godwit::serve {

// Parses a request body into an object; anything else is RequestError (400).
Json parse_body(const std::string& body);

// A value shortened for an error message.
std::string shown(const Json& value);

// An integer in any of its spellings (16, 16.0); nullopt for everything else and for values outside int64.
std::optional<std::int64_t> as_integer(const Json& value);

class JsonFields {
 public:
  // `object` must outlive the reader and be an object (else RequestError naming `path`).
  explicit JsonFields(const Json& object, std::string path = "");

  // The value of a field that is there and not null.
  const Json* find(std::string_view name) const;
  // Says that a field is known here, and that leaving it alone changes no answer.
  void ignore(std::string_view name) const { asked_.emplace(name); }
  // Every name that was looked for so far, by any of these functions: what the request is not asked for, nobody heeds.
  const std::set<std::string, std::less<>>& asked() const { return asked_; }
  bool has(std::string_view name) const;  // there, though perhaps null
  std::string path_of(std::string_view name) const;

  std::optional<bool> boolean(std::string_view name) const;
  std::optional<std::int64_t> integer(std::string_view name, std::int64_t least,
                                      std::int64_t most = std::numeric_limits<std::int64_t>::max()) const;
  // A limit of something: an integer of any size, and past what an int holds the largest (or least) int.
  std::optional<int> count(std::string_view name, std::int64_t least) const;
  // Finite, within [least, most].
  std::optional<double> number(std::string_view name, double least, double most) const;
  std::optional<std::string> string(std::string_view name) const;
  const Json* array(std::string_view name) const;
  const Json* object(std::string_view name) const;

 private:
  const Json& object_;
  std::string path_;
  mutable std::set<std::string, std::less<>> asked_;
};

}  // namespace godwit::serve
