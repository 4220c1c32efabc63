// A model whose logits are written by the test: a function of the token's position. It keeps no state, so a
// whole engine runs over it in microseconds and without a file.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "base/mx_ops.h"
#include "models/model_bundle.h"

namespace godwit::testing {

struct Script {
  // Logits after the token at `position`, `vocabulary` values. Runs on the engine thread; may throw.
  std::function<std::vector<float>(int position)> logits;
  // Called at the start of every forward with its first position and its number of tokens.
  std::function<void(int first, int count)> on_forward = [](int, int) {};
  int vocabulary = 16;
  int context_length = 64;
  std::set<int> end_ids = {};
};

// Logits that make `token` the greedy choice.
inline std::vector<float> one_hot(int token, int vocabulary = 16) {
  std::vector<float> row(static_cast<std::size_t>(vocabulary), 0.0f);
  row[static_cast<std::size_t>(token)] = 9.0f;
  return row;
}

class ScriptedModel final : public models::Model {
 public:
  explicit ScriptedModel(Script script) : script_(std::move(script)) {}

  cache::StateNeeds state_needs() const override { return {}; }

  // "Hidden states" are the positions, behind a lazy multiplication by an array that was made at opening.
  mx::array hidden(const mx::array& tokens, cache::Step& step) const override {
    const int first = step.row_offsets()[0];
    script_.on_forward(first, step.token_count());
    const mx::array positions = mx::arange(first, first + tokens.shape(0), 1);
    return mx::reshape(mx::multiply(mx::astype(positions, mx::float32), lazy_one_), {-1, 1});
  }

  mx::array logits(const mx::array& hidden) const override {
    mx::array positions = mx::contiguous(hidden);
    positions.eval();
    std::vector<float> rows;
    for (std::size_t i = 0; i < positions.size(); ++i) {
      const std::vector<float> row = script_.logits(static_cast<int>(positions.data<float>()[i]));
      rows.insert(rows.end(), row.begin(), row.end());
    }
    return mx::array(rows.begin(), {hidden.shape(0), script_.vocabulary}, mx::float32);
  }

 private:
  Script script_;
  mx::array lazy_one_ = mx::multiply(mx::array(0.5f), mx::array(2.0f));  // never evaluated by its maker
};

inline std::unique_ptr<models::ModelBundle> scripted_bundle(const Script& script,
                                                            std::optional<text::Tokenizer> tokenizer = {}) {
  auto bundle = std::make_unique<models::ModelBundle>();
  bundle->options.id = "scripted";
  bundle->graph = std::make_unique<ScriptedModel>(script);
  bundle->store = std::make_unique<cache::StateStore>(bundle->graph->state_needs(), cache::KvPolicy(),
                                                      NumericMode::reference);
  bundle->tokenizer = std::move(tokenizer);
  bundle->end_ids = script.end_ids;
  bundle->context_length = script.context_length;
  bundle->vocabulary = script.vocabulary;
  return bundle;
}

}  // namespace godwit::testing
