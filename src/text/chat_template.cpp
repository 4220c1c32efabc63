#include "text/chat_template.h"

#include <array>
#include <chrono>

#include "text/rust_call.h"

namespace godwit::text {
namespace {

constexpr std::string_view kTag = "template";

struct FreeTemplate {
  void operator()(GodwitTemplate* handle) const { godwit_template_free(handle); }
};

std::int64_t system_clock_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// transformers gives templates the reasoning of a message under every name in use: `reasoning_content`
// always, and `thinking` first unless the message has its own.
Json with_reasoning_names(const Json& messages) {
  static constexpr std::array<const char*, 3> kNames = {"reasoning_content", "thinking", "reasoning"};
  if (!messages.is_array()) return messages;
  Json out = Json::array();
  for (const Json& message : messages) {
    const Json* reasoning = nullptr;
    for (const char* name : kNames)
      if (!reasoning && message.is_object() && message.contains(name) && !message[name].is_null())
        reasoning = &message[name];
    if (!reasoning) {
      out.push_back(message);
      continue;
    }
    Json named = Json::object();
    named["thinking"] = *reasoning;
    for (const auto& [key, value] : message.items()) named[key] = value;
    named["reasoning_content"] = *reasoning;
    out.push_back(std::move(named));
  }
  return out;
}

}  // namespace

struct ChatTemplate::Impl {
  std::string source;
  Json special_tokens;
  std::string origin;
  std::function<std::int64_t()> now;
  std::unique_ptr<GodwitTemplate, FreeTemplate> handle;
};

ChatTemplate::ChatTemplate(std::string source, Json special_tokens, std::string_view origin,
                           std::function<std::int64_t()> now_unix)
    : impl_(std::make_unique<Impl>()) {
  impl_->source = std::move(source);
  impl_->special_tokens = std::move(special_tokens);
  impl_->origin = std::string(origin);
  impl_->now = now_unix ? std::move(now_unix) : system_clock_now;
  GodwitTemplate* handle = nullptr;
  rust_call(kTag, origin, [&](GodwitBytes* error) {
    return godwit_template_new(impl_->source.data(), impl_->source.size(), &handle, error);
  });
  impl_->handle.reset(handle);
}

ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

std::string ChatTemplate::render(const ChatInput& input) const {
  Json variables = impl_->special_tokens.is_object() ? impl_->special_tokens : Json::object();
  if (input.extra.is_object())
    for (const auto& [key, value] : input.extra.items()) variables[key] = value;
  variables["messages"] = with_reasoning_names(input.messages);
  variables["tools"] = input.tools;
  variables["documents"] = input.documents;
  variables["add_generation_prompt"] = input.add_generation_prompt;
  const std::string json = dump_json(variables);
  RustBytes text;
  rust_call(kTag, impl_->origin, [&](GodwitBytes* error) {
    return godwit_template_render(impl_->handle.get(), json.data(), json.size(), impl_->now(), text.out(),
                                  error);
  });
  return std::string(text.view());
}

const std::string& ChatTemplate::source() const { return impl_->source; }

}  // namespace godwit::text
