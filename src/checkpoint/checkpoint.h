// A checkpoint on disk, opened in two steps: open() reads what describes the model and touches no tensor file
// of a folder; weights() maps the tensors and checks every header.
//
// A checkpoint is a folder (config.json with model*.safetensors or *.gguf beside it) or a .gguf file, whose
// parts
// `-00001-of-0000N.gguf` are found from any one of them.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/config.h"
#include "checkpoint/gguf_tokenizer.h"
#include "checkpoint/weight_store.h"

namespace godwit::checkpoint {

struct GgufFile;

class Checkpoint {
 public:
  // Throws Error{not_found} for a missing path, Error{corrupt_file} or Error{unsupported} naming file and
  // value.
  static Checkpoint open(const std::filesystem::path& path, const Dialects& dialects);

  const std::filesystem::path& path() const { return path_; }
  const Config& config() const { return config_; }
  bool is_gguf() const { return gguf_ != nullptr; }
  // Present for GGUF files that carry a vocabulary.
  const std::optional<GgufTokenizer>& gguf_tokenizer() const { return gguf_tokenizer_; }
  // tokenizer.chat_template of a GGUF file; that of a folder is the text layer's business.
  const std::optional<std::string>& gguf_chat_template() const { return gguf_chat_template_; }

  // Gives back the vocabulary and the template of a GGUF file, which nobody needs once a tokenizer was made of them.
  void drop_text() {
    gguf_tokenizer_.reset();
    gguf_chat_template_.reset();
  }

  // Maps every tensor file and hands the tensors out under Hugging Face names.
  std::shared_ptr<WeightStore> weights(const WeightRules& rules = {}) const;

 private:
  std::filesystem::path path_;
  Config config_;
  std::shared_ptr<const GgufFile> gguf_;
  const GgufDialect* gguf_dialect_ = nullptr;  // of gguf_
  std::optional<GgufTokenizer> gguf_tokenizer_;
  std::optional<std::string> gguf_chat_template_;
};

}  // namespace godwit::checkpoint
