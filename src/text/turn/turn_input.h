// The text of an answer as it arrives, with the places where special tokens stood. Readers look at what is there,
// take what is certain and leave the rest: whether more may come decides between "no" and "maybe".
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace godwit::text {

// A text with a meaning of its own in an answer.
struct Marker {
  std::string text = {};
  int id = -1;            // the token that the text begins with, when the vocabulary has one
  bool by_id_only = false;  // the same text spelled by other tokens is no marker
};

enum class Match { no, yes, maybe };  // maybe: more text decides

class TurnInput {
 public:
  void add(std::string_view text) { text_ += text; }
  // The whole text of a special token.
  void add_token(std::string_view text);
  void end() { has_ended_ = true; }

  bool has_ended() const { return has_ended_; }
  bool is_empty() const { return at_ == text_.size(); }
  std::string_view rest() const { return std::string_view(text_).substr(at_); }
  void take(std::size_t size);

  // Whether the marker stands at `offset` of rest(). An empty marker stands nowhere.
  Match at(const Marker& marker, std::size_t offset = 0) const;
  Match at(std::string_view text, std::size_t offset = 0) const;
  bool is_token(std::size_t offset) const;
  // Where the next special token begins in rest(); its size when there is none.
  std::size_t next_token() const;
  // The size of the white space at `offset`; nullopt when more may follow.
  std::optional<std::size_t> space(std::size_t offset) const;

  // The earliest of the markers, of several at one place the longest. No marker: text before `at` holds none.
  struct Found {
    const Marker* marker;
    std::size_t at;
  };
  Found find(std::span<const Marker* const> markers, std::size_t from = 0) const { return find(markers, from, kNowhere); }
  // The same with a limit that does not depend on how the text arrives: a marker behind the first `most` bytes is none, and
  // `at` is most + 1 once there can be no other.
  Found find_within(std::span<const Marker* const> markers, std::size_t most) const { return find(markers, 0, most); }

  // A place to come back to. Only the last one counts.
  void keep() { kept_ = at_; }
  void back();
  void release() { kept_ = kNowhere; }

 private:
  static constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();

  Found find(std::span<const Marker* const> markers, std::size_t from, std::size_t most) const;

  std::string text_;
  std::vector<std::size_t> tokens_;  // where special tokens begin in text_, ascending
  std::size_t at_ = 0, kept_ = kNowhere;
  bool has_ended_ = false;
};

bool is_space(char c);

}  // namespace godwit::text
