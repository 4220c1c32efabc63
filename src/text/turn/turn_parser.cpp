#include "text/turn/turn_parser.h"

#include "text/turn/tool_formats.h"
#include "text/turn/turn_machine.h"

namespace godwit::text {

struct TurnParser::Impl {
  TurnFormat format;
  Tools tools;
  TurnInput in;
  TurnOutput out;
  std::unique_ptr<TurnMachine> machine;
  bool was_in_reasoning = false;

  Impl(const TurnFormat& of, std::span<const ToolSpec> given, const TurnStart& start)
      : format(of), tools(given.begin(), given.end()), out(call_ids(of.tools), start.seed, start.is_parallel) {
    machine = format.tools == ToolFormat::harmony ? harmony_machine(format, tools, start.is_in_reasoning)
                                                  : marked_machine(format, tools, start.is_in_reasoning);
  }

  // A special token whose text is not shown is there all the same.
  void add(int id, std::string_view text) {
    const auto token = id < 0 ? format.token_texts.end() : format.token_texts.find(id);
    if (token == format.token_texts.end() || !(text.empty() || text.ends_with(token->second))) return in.add(text);
    if (!text.empty()) in.add(text.substr(0, text.size() - token->second.size()));
    in.add_token(token->second);
  }
};

TurnParser::TurnParser(const TurnFormat& format, std::span<const ToolSpec> tools, const TurnStart& start)
    : impl_(std::make_unique<Impl>(format, tools, start)) {}
TurnParser::TurnParser(TurnParser&&) noexcept = default;
TurnParser& TurnParser::operator=(TurnParser&&) noexcept = default;
TurnParser::~TurnParser() = default;

std::vector<TurnPiece> TurnParser::add(int id, std::string_view text) {
  if (impl_->out.is_over()) return {};
  impl_->was_in_reasoning = impl_->machine->is_in_reasoning();
  impl_->add(id, text);
  impl_->machine->run(impl_->in, impl_->out);
  return impl_->out.take();
}

std::vector<TurnPiece> TurnParser::finish() {
  impl_->in.end();
  impl_->machine->run(impl_->in, impl_->out);
  return impl_->out.take();
}

bool TurnParser::is_in_reasoning() const { return impl_->was_in_reasoning || impl_->machine->is_in_reasoning(); }
bool TurnParser::is_over() const { return impl_->out.is_over(); }
bool TurnParser::is_cut() const { return impl_->out.is_cut(); }

}  // namespace godwit::text
