// Answers in the making, on disk: after a restart a request that is equal in everything goes on with the tokens that it
// had, and its bytes are those that it would have had. Beside the records of the prompt cache, which has their keys and
// values. On the engine thread.
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/log.h"
#include "decode/answer_builder.h"
#include "decode/generation.h"

namespace godwit::decode {

class AnswerRecords {
 public:
  using Choices = std::vector<AnswerBuilder::Choice>;

  // FOLDER/answers, made with mode 0700. `identity` names the model and its arithmetic. What an earlier process left there
  // can be taken; what is older than a week is removed. Throws Error{io} for a folder that cannot be made.
  AnswerRecords(const std::filesystem::path& folder, std::string identity, const Log& log);

  // Whether an equal request has an equal answer that its tokens are enough to go on with: it is greedy or seeded, without
  // mirostat, whose level is learnt from logits, and under no constraint, which has no name.
  static bool is_recordable(const GenerationRequest& request);
  // Of one of its choices, over a store of this signature.
  std::string key_of(const GenerationRequest& request, int choice, const std::string& signature) const;

  // What an earlier process recorded, once; empty: nothing.
  Choices take(const std::string& key);
  // Adds what has been made since. A fault is a warning: it costs the resumption and nothing else.
  void add(const std::string& key, std::span<const AnswerBuilder::Choice> made) const;
  void drop(const std::string& key) const;

 private:
  std::filesystem::path file_of(const std::string& key) const { return folder_ / (key + ".jsonl"); }

  std::filesystem::path folder_;
  std::string identity_;
  Log log_;
  std::set<std::string> left_;  // keys of an earlier process
};

}  // namespace godwit::decode
