// The second process: it opens the model again and goes on from what it finds in the folder of the first.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "one_answer/forward.h"

namespace godwit::one_answer {

inline constexpr const char* kIdentity = "a tiny model";
inline constexpr const char* kPlanned = "one plan";  // the space of a chunk plan in `reference`

// One thing to look up: the longest prefix of tokens[0, length), and the tokens behind it to feed.
struct Question {
  std::string kv;
  int start = 0;
  std::vector<int> tokens;
  int length = 0;
  std::vector<int> plan = {};  // `reference`: the spans of the whole run
};

struct Finding {
  int position = 0;  // 0: nothing was found
  Logits logits;     // of the tokens behind it
};

// What the cold tier keeps in `folder` for `kv`; the same words in both processes.
Finding look_up(const models::ModelBundle& model, const std::filesystem::path& folder, const Question& question);

// Starts this program anew for all `questions` and opens a model as `model` was. A child that fails is a failure of the
// test.
std::vector<Finding> ask_another_process(const models::ModelBundle& model, const std::filesystem::path& folder,
                                         const std::vector<Question>& questions);

// main() of the child: argv[2] is its list of questions. Returns the exit code.
int answer_questions(const std::filesystem::path& list);

}  // namespace godwit::one_answer
