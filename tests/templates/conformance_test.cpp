// Every template of the collection with every conversation, and a table of small forms, byte for byte against
// jinja2.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "expected.h"
#include "text/chat_template.h"
#include "text/rust_call.h"

namespace godwit::text {
namespace {

// "name" to "reason" of the listed exceptions of one set ("chat" or "form").
std::map<std::string, std::string> exceptions(const std::string& set) {
  std::map<std::string, std::string> listed;
  std::ifstream file(GODWIT_EXCEPTIONS);
  for (std::string line; std::getline(file, line);) {
    const auto first = line.find(" / "), last = line.rfind(" / ");
    if (line.starts_with("#") || first == std::string::npos || first == last) continue;
    if (line.substr(0, first) == set)
      listed[line.substr(first + 3, last - first - 3)] = line.substr(last + 3);
  }
  return listed;
}

// What a render came to: a text, or a message.
struct Outcome {
  bool raised;
  std::string text;
};

template <typename Render>
Outcome run(Render&& render) {
  try {
    return {false, render()};
  } catch (const Error& e) {
    return {true, e.what()};
  }
}

// Empty when `got` is what jinja2 did, else what differs.
std::string difference(const Json& want, const Outcome& got) {
  if (want.contains("text")) {
    if (got.raised) return "raised " + got.text;
    if (want["text"] == got.text) return "";
    return "want " + want["text"].dump() + "\n     got  " +
           Json(got.text).dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  if (!got.raised)
    return "jinja2 raised " + want["raises"].get<std::string>() + ", got " + Json(got.text).dump();
  if (want.contains("message") && got.text.find(want["message"].get<std::string>()) == std::string::npos)
    return "message " + want["message"].dump() + " is not in " + got.text;
  return "";
}

class Tally {
 public:
  explicit Tally(const std::string& set) : set_(set), listed_(exceptions(set)) {}

  void take(const std::string& name, const std::string& problem) {
    ++total_;
    const bool excused = listed_.contains(name);
    if (excused) seen_.insert(name);
    if (problem.empty()) {
      ++equal_;
      EXPECT_FALSE(excused) << name << " is listed as an exception but is equal now";
    } else if (!excused) {
      ADD_FAILURE() << name << "\n     " << problem.substr(0, 15000);
    }
  }

  ~Tally() {
    std::printf("%s: %d of %d equal, %zu listed exceptions\n", set_.c_str(), equal_, total_, listed_.size());
    for (const auto& [name, reason] : listed_)
      EXPECT_TRUE(seen_.contains(name)) << name << " is listed but unknown";
  }

  int total() const { return total_; }

 private:
  std::string set_;
  std::map<std::string, std::string> listed_;
  std::set<std::string> seen_;
  int total_ = 0, equal_ = 0;
};

ChatInput input_of(const Json& chat) {
  ChatInput input;
  input.messages = chat["messages"];
  if (chat.contains("tools")) input.tools = chat["tools"];
  if (chat.contains("documents")) input.documents = chat["documents"];
  input.add_generation_prompt = chat.value("add_generation_prompt", true);
  if (chat.contains("extra")) input.extra = chat["extra"];
  return input;
}

TEST(TemplateConformance, EveryTemplateRendersEveryChatAsJinja2Does) {
  Tally tally("chat");
  const auto now = [] { return expected()["clock"].get<std::int64_t>(); };
  for (const auto& [name, source] : expected()["templates"].items()) {
    for (const auto& [chat_name, chat] : expected()["chats"].items()) {
      const Outcome got = run([&] {
        const ChatTemplate chat_template(source.get<std::string>(), expected()["special"], name, now);
        return chat_template.render(input_of(chat));
      });
      tally.take(name + " x " + chat_name, difference(expected()["rendered"][name][chat_name], got));
    }
  }
  EXPECT_GT(tally.total(), 1800);
}

TEST(TemplateConformance, EveryFormRendersAsInJinja2) {
  Tally tally("form");
  const auto now = [] { return expected()["clock"].get<std::int64_t>(); };
  for (const auto& [name, form] : expected()["forms"].items()) {
    const Outcome got = run([&, &source = form["source"]] {
      const ChatTemplate chat_template(source.get<std::string>(), Json::object(), "form", now);
      ChatInput input;
      input.extra = expected()["context"];
      return chat_template.render(input);
    });
    tally.take(name, difference(form, got));
  }
  EXPECT_GT(tally.total(), 500);
}

}  // namespace
}  // namespace godwit::text
