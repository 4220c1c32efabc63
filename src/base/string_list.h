// Many short texts in one piece of memory: a vocabulary of 150,000 tokens is two allocations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace godwit {

class StringList {
 public:
  class Iterator {
   public:
    using iterator_concept = std::forward_iterator_tag;
    using iterator_category = std::input_iterator_tag;
    using value_type = std::string_view;
    using difference_type = std::ptrdiff_t;

    Iterator() = default;
    Iterator(const StringList* list, std::size_t at) : list_(list), at_(at) {}
    std::string_view operator*() const { return (*list_)[at_]; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) {
      const Iterator before = *this;
      ++at_;
      return before;
    }
    bool operator==(const Iterator&) const = default;

   private:
    const StringList* list_ = nullptr;
    std::size_t at_ = 0;
  };

  StringList() = default;
  StringList(std::initializer_list<std::string_view> texts) {
    for (const std::string_view text : texts) push_back(text);
  }
  explicit StringList(std::span<const std::string> texts) {
    for (const std::string& text : texts) push_back(text);
  }

  void reserve(std::size_t count) { ends_.reserve(count); }
  void push_back(std::string_view text) {
    bytes_ += text;
    ends_.push_back(bytes_.size());
  }
  void clear() {
    bytes_.clear();
    ends_.clear();
  }

  std::size_t size() const { return ends_.size(); }
  bool empty() const { return ends_.empty(); }
  // Good until the list changes.
  std::string_view operator[](std::size_t i) const {
    const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(bytes_).substr(begin, ends_[i] - begin);
  }
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, size()}; }
  bool operator==(const StringList&) const = default;

  // All texts one after another, and where each ends.
  std::string_view bytes() const { return bytes_; }
  std::span<const std::uint64_t> ends() const { return ends_; }

 private:
  std::string bytes_;
  std::vector<std::uint64_t> ends_;
};

}  // namespace godwit
