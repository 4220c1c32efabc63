// An opened model with everything around it: graph, state store, tokenizer, template, end tokens, limits.
//
// Opening is a pipeline whose order is a contract (engine.md 1.1): config -> family -> weights -> audit. A failure before
// weights opens no tensor file.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/log.h"
#include "cache/state.h"
#include "checkpoint/config.h"
#include "models/model.h"
#include "models/model_options.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace godwit::models {

class ModelBundle {
 public:
  // Call on the thread that will run the model.
  static std::unique_ptr<ModelBundle> open(const ModelOptions& options, const Log& log);

  ModelOptions options;
  checkpoint::Config config;
  std::unique_ptr<Model> graph;
  std::unique_ptr<cache::StateStore> store;
  std::optional<text::Tokenizer> tokenizer;         // absent: only token prompts can be served
  std::optional<text::ChatTemplate> chat_template;  // absent: chat routes are an error that says so
  std::set<int> end_ids;                            // config, generation_config and tokenizer together
  int context_length = 0;
  int vocabulary = 0;  // width of the logits

  // Throws Error{unsupported} naming the model and what is missing.
  const text::Tokenizer& need_tokenizer() const;
  const text::ChatTemplate& need_chat_template() const;
};

}  // namespace godwit::models
