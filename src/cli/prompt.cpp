#include "cli/prompt.h"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "base/error.h"
#include "text/chat_encoder.h"
#include "text/utf8.h"

namespace godwit::cli {
namespace {

// JSON on the way to the template would turn broken bytes into U+FFFD without a word.
void require_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const int size = text::utf8_character(text.substr(at));
    if (size <= 0) fail(ErrorCode::invalid_argument, "cli", "the prompt is not UTF-8 at byte {}", at);
    at += static_cast<std::size_t>(size);
  }
}

}  // namespace

std::vector<int> parse_token_list(std::string_view text) {
  std::vector<int> tokens;
  std::size_t begin = 0;
  while (true) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    const std::string_view part = text.substr(begin, comma - begin);
    int token = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), token);
    if (error != std::errc() || end != part.data() + part.size())
      fail(ErrorCode::invalid_argument, "cli",
           "--tokens: \"{}\" is not a token id (a list such as 1,2,3 is needed)", part);
    tokens.push_back(token);
    if (comma == text.size()) return tokens;
    begin = comma + 1;
  }
}

std::string read_text(const std::string& path) {
  if (path == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
  // A stream over a folder opens, and then throws words of the library that name nothing.
  if (std::error_code error; std::filesystem::is_directory(path, error))
    fail(ErrorCode::invalid_argument, "cli", "{} is a folder; a text file is needed", path);
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(ErrorCode::not_found, "cli", "{}: cannot be opened", path);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (file.bad()) fail(ErrorCode::io, "cli", "{}: cannot be read", path);
  return text;
}

std::vector<int> chat_tokens(const models::ModelBundle& model, const Json& messages) {
  for (const Json& message : messages) require_utf8(message["content"].get_ref<const std::string&>());
  text::ChatInput input;
  input.messages = messages;
  return text::ChatEncoder(model.need_tokenizer()).encode(model.need_chat_template(), std::move(input));
}

}  // namespace godwit::cli
