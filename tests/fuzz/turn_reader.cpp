#include "turn_reader.h"

#include <random>
#include <stdexcept>

#include "base/json.h"
#include "text/turn/call_text.h"
#include "text/turn/turn_parser.h"
#include "text/utf8.h"

namespace godwit::fuzz {
namespace {

using namespace text;

constexpr std::size_t kMaxText = 1 << 14;

TurnFormat format_of(unsigned char choice) {
  const auto names = tool_format_names();
  TurnFormat format{.reasoning_open = "<think>", .reasoning_close = "</think>"};
  const std::string_view name = names[choice % names.size()];
  while (name_of(format.tools) != name) format.tools = static_cast<ToolFormat>(static_cast<int>(format.tools) + 1);
  return format;
}

std::vector<ToolSpec> tools() {
  const Json set = Json::parse(R"({"type":"object","properties":{"text":{"type":"string"},"count":{"type":"integer"},
    "map":{"type":"object"},"maybe":{"anyOf":[{"type":"string"},{"type":"null"}]}}})");
  return {{.name = "set", .parameters = set}, {.name = "f"}};
}

struct Turn {
  std::string reasoning, content, names;
  std::vector<std::string> arguments;
  bool operator==(const Turn&) const = default;

  void take(const std::vector<TurnPiece>& pieces) {
    for (const TurnPiece& piece : pieces) {
      if (piece.kind == TurnPiece::Kind::reasoning) reasoning += piece.text;
      if (piece.kind == TurnPiece::Kind::content) content += piece.text;
      if (piece.kind == TurnPiece::Kind::arguments) arguments.at(static_cast<std::size_t>(piece.call)) += piece.text;
      if (piece.kind != TurnPiece::Kind::call) continue;
      names += piece.name + '\n' + piece.id + '\n';
      arguments.emplace_back();
    }
  }
};

Turn parse(const TurnFormat& format, const std::vector<ToolSpec>& given, const std::string& text, unsigned cut) {
  TurnParser parser(format, given, {.is_in_reasoning = cut % 3 == 1});
  std::mt19937 random(cut);
  Turn turn;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = cut < 3 ? text.size() : cut < 6 ? 1 : 1 + random() % 11;
    turn.take(parser.add(-1, text.substr(at, size)));
    at += std::min(size, text.size() - at);
  }
  turn.take(parser.finish());
  return turn;
}

}  // namespace

void read_turn(const std::string& bytes) {
  if (bytes.size() < 2) return;
  Utf8Stream characters;  // what a detokenizer lets through
  std::string text = characters.add(std::string_view(bytes).substr(2, kMaxText));
  text += characters.finish();
  const TurnFormat format = format_of(static_cast<unsigned char>(bytes[0]));
  const unsigned start = static_cast<unsigned char>(bytes[1]) % 3, cut = 6 + 3 * static_cast<unsigned char>(bytes[1]) + start;
  const Turn whole = parse(format, tools(), text, start);
  if (parse(format, tools(), text, 3 + start) != whole) throw std::logic_error("single bytes give another parse");
  if (parse(format, tools(), text, cut) != whole) throw std::logic_error("pieces give another parse");
  for (const std::string& arguments : whole.arguments)
    if (!Json::accept(arguments)) throw std::logic_error("no JSON: " + arguments);
  TurnFormat plain = format;
  plain.reasoning_open = plain.reasoning_close = "";
  if (format.tools != ToolFormat::harmony && parse(plain, {}, text, 0).content != text)
    throw std::logic_error("content is lost");
}

std::vector<std::string> turn_seeds() {
  const std::vector<WrittenCall> calls = {
      {"set", Json::parse(R"({"text":"a\n<b> \"c\"","count":-12,"map":{"k":[1.5,null,true,"x"]},"maybe":null})"), ""},
      {.name = "f"}};
  std::vector<std::string> seeds;
  const auto names = tool_format_names();
  for (std::size_t i = 0; i < names.size(); ++i) {
    const TurnFormat format = format_of(static_cast<unsigned char>(i));
    const std::string head{static_cast<char>(i), static_cast<char>(i)};
    seeds.push_back(head + "<think>\nwhy\n</think>\n\nSo.\n" + call_text(format.tools, calls) + "\nDone.");
    seeds.push_back(head + call_text(format.tools, calls));
  }
  return seeds;
}

}  // namespace godwit::fuzz
