#include "checkpoint/config_fingerprint.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "base/canonical_json.h"
#include "base/sha256.h"

namespace godwit::checkpoint {
namespace {

// Keys of the decoder's object that no graph reads, sorted. A key stays out of this list while any family of
// the oracle gives it a meaning ("top_k" counts experts somewhere). Only the object's own level: the same
// word inside rope_scaling counts.
constexpr std::array<std::string_view, 51> kIgnored = {
    "_attn_implementation",
    "_attn_implementation_autoset",
    "_commit_hash",
    "_name_or_path",
    "architectures",
    "attention_dropout",
    "attention_probs_dropout_prob",
    "attn_implementation",
    "attn_pdrop",
    "auto_map",
    "bad_words_ids",
    "begin_suppress_tokens",
    "bos_token_id",
    "classifier_dropout",
    "cls_token_id",
    "decoder_start_token_id",
    "do_sample",
    "dtype",
    "embd_pdrop",
    "embedding_dropout",
    "eos_token_id",
    "finetuning_task",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "gradient_checkpointing",
    "hidden_dropout",
    "hidden_dropout_prob",
    "id2label",
    "initializer_factor",
    "initializer_range",
    "label2id",
    "max_length",
    "name_or_path",
    "num_beams",
    "output_attentions",
    "output_hidden_states",
    "output_router_logits",
    "pad_token_id",
    "pretraining_tp",
    "problem_type",
    "quantization",  // counted as the map that was read from it
    "quantization_config",
    "resid_pdrop",
    "return_dict",
    "router_aux_loss_coef",
    "sep_token_id",
    "suppress_tokens",
    "torch_dtype",
    "torchscript",
    "transformers_version",
    "use_cache",
};
static_assert(std::ranges::is_sorted(kIgnored));

Json without_nulls(const Json& value) {
  if (!value.is_structured()) return value;
  if (value.is_array()) {
    Json list = Json::array();
    for (const Json& item : value) list.push_back(without_nulls(item));
    return list;
  }
  Json object = Json::object();
  for (const auto& [key, item] : value.items())
    if (!item.is_null()) object[key] = without_nulls(item);
  return object;
}

}  // namespace

std::string canonical_config(const Config& config) {
  Json counted = Json::object();
  for (const auto& [key, value] : config.raw.items())
    if (!std::ranges::binary_search(kIgnored, std::string_view(key))) counted[key] = value;
  return canonical_json(without_nulls({{"config", counted},
                                       {"model_type", config.model_type},
                                       {"quantization", config.quantization.to_json()},
                                       {"source", config.from_gguf ? "gguf" : "json"}}));
}

Fingerprint config_fingerprint(const Config& config) {
  return {sha256_of("godwit-config-1\n" + canonical_config(config))};
}

}  // namespace godwit::checkpoint
