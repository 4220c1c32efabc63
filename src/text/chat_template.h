// Jinja chat templates rendered byte for byte as transformers does with jinja2, over the Rust crate
// `minijinja`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/json.h"

namespace godwit::text {

struct ChatInput {
  Json messages = Json::array();
  Json tools = nullptr;      // null: none
  Json documents = nullptr;  // null: none
  bool add_generation_prompt = true;
  Json extra = Json::object();  // chat_template_kwargs: enable_thinking, ...
};

class ChatTemplate {
 public:
  // `special_tokens`: bos_token, eos_token, ... as template variables. A template that does not parse is
  // Error{corrupt_file} with its line. `now_unix` feeds strftime_now (local time); tests pass a fixed clock.
  ChatTemplate(std::string source, Json special_tokens, std::string_view origin,
               std::function<std::int64_t()> now_unix = {});
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  // raise_exception in the template and every other render failure is Error{invalid_argument} with message
  // and line. Work is bounded (fuel), so a hostile template ends with an error.
  std::string render(const ChatInput& input) const;
  const std::string& source() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace godwit::text
