// An opened model with everything around it: graph, state store, tokenizer, template, end tokens, limits.
//
// Opening is a pipeline whose order is a contract: config -> profile -> implementation -> KV policy ->
// weights -> audit, with the text on a thread of its own beside the weights. A failure before weights opens no tensor
// file; of two failures beside each other that of the text is thrown. A missing tokenizer or template is an error only
// for those who need it; a damaged one is an error at once.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "base/file_state.h"
#include "base/log.h"
#include "cache/state.h"
#include "checkpoint/config.h"
#include "models/compiled_step.h"
#include "models/decode_plan.h"
#include "models/model.h"
#include "models/model_options.h"
#include "models/profile_table.h"
#include "ops/executor.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace godwit::models {

class ModelBundle {
 public:
  // Call on the thread that will run the model.
  static std::unique_ptr<ModelBundle> open(const ModelOptions& options, const Log& log);

  // A further store over the same graph, for rows under another KV policy. It must not outlive the bundle.
  // Throws what the constructor of StateStore throws.
  std::unique_ptr<cache::StateStore> make_store(const cache::KvPolicy& kv) const;

  ModelOptions options;  // kv complete: a policy "config" has its layers
  checkpoint::Config config;
  ResolvedProfile profile;  // how it was opened, and what is promised about it
  std::map<std::filesystem::path, FileState> weight_files;  // that the tensors came from, as they were then
  NumericMode mode = NumericMode::reference;                // the one that was opened
  std::unique_ptr<ops::NativeRuntime> runtime;              // `native` only, with the executor over it
  std::unique_ptr<ops::Executor> executor;
  std::unique_ptr<Model> graph;
  std::unique_ptr<const DecodePlan> plan;  // of the graph; absent: `reference`, --plan off, or see plan_problem
  std::string plan_problem;                // why there is none though one was looked for
  CompiledStep::Weights exchangeable;               // `reference`: the matrices of the graph's linear layers
  std::unique_ptr<CompiledStep> compiled;           // null: each step runs the graph
  std::unique_ptr<cache::StateStore> store;         // of options.kv
  std::optional<text::Tokenizer> tokenizer;         // absent: only token prompts can be served
  std::optional<text::ChatTemplate> chat_template;  // absent: chat routes are an error that says so
  std::set<int> end_ids;                            // config, generation_config and tokenizer together
  // Tokens of prompt and answer together; INT_MAX where nothing states a limit.
  int context_length = 0;
  int vocabulary = 0;  // width of the logits

  // Makes `compiled`. `reference` only.
  void compile(bool is_required, const Log& log);

  std::string tokenizer_problem;  // why there is none, for need_tokenizer()

  // What meets quantized weights in the arithmetic that was opened; nothing in `reference`, whose activations
  // have the model's dtype.
  std::optional<kernels::ActivationForm> activations() const;

  // What runs a step: the plan (generated), or the graph as the profile has it.
  Specialization specialization() const;

  // `native` only: one step's values of its tokens, all or those at the ascending indices `chosen`, f32 row-major, valid
  // until the next step; nothing for StepOutput::state. By the plan where there is one, with the bits of the graph. The
  // caller publishes the step.
  std::span<const float> forward(std::span<const int> tokens, cache::Step& step, ops::StepOutput wanted,
                                 std::span<const int> chosen = {}) const;

  // The promise of the profile about the arithmetic that was opened; nothing where it makes none.
  std::optional<Fidelity> fidelity() const;

  // Throws Error{unsupported} naming the model and what is missing.
  const text::Tokenizer& need_tokenizer() const;
  const text::ChatTemplate& need_chat_template() const;
};

}  // namespace godwit::models
