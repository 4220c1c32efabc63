#include "text/builtin_templates.h"

namespace godwit::text {
namespace {

// Gemma 3: turns between <start_of_turn> and <end_of_turn>, roles user and model in strict alternation, no
// system turn: the system text opens the first user turn. Images stand as <start_of_image>.
constexpr std::string_view kGemma3 = R"({{ bos_token }}
{%- set ns = namespace(system='') -%}
{%- set turns = messages -%}
{%- if messages and messages[0].role == 'system' -%}
  {%- set turns = messages[1:] -%}
  {%- if messages[0].content is string -%}
    {%- set ns.system = messages[0].content + '\n\n' -%}
  {%- elif messages[0].content -%}
    {%- set ns.system = messages[0].content[0].text + '\n\n' -%}
  {%- endif -%}
{%- endif -%}
{%- for message in turns -%}
  {%- if (message.role == 'user') != (loop.index0 % 2 == 0) -%}
    {{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}
  {%- endif -%}
  {{ '<start_of_turn>' + ('model' if message.role == 'assistant' else message.role) + '\n' + (ns.system if loop.first else '') }}
  {%- if message.content is string -%}
    {{ message.content | trim }}
  {%- elif message.content is iterable -%}
    {%- for part in message.content -%}
      {%- if part.type == 'image' -%}
        {{ '<start_of_image>' }}
      {%- elif part.type == 'text' -%}
        {{ part.text | trim }}
      {%- endif -%}
    {%- endfor -%}
  {%- else -%}
    {{ raise_exception('Invalid content type') }}
  {%- endif -%}
  {{ '<end_of_turn>\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
  {{ '<start_of_turn>model\n' }}
{%- endif -%}
)";

}  // namespace

std::optional<std::string_view> builtin_chat_template(std::string_view family) {
  if (family == "gemma3" || family == "gemma3_text") return kGemma3;
  return std::nullopt;
}

}  // namespace godwit::text
