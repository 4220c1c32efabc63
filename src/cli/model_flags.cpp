#include "cli/model_flags.h"

#include "base/error.h"
#include "hub/model_resolver.h"

namespace godwit::cli {

void ModelFlags::add_to(CLI::App& verb, bool with_chat) {
  verb.add_option("-m,--model", model, "Folder, .gguf file, hub id or name of a model")
      ->capture_default_str();
  verb.add_option("--math", math, "Arithmetic")
      ->check(CLI::IsMember({"reference", "native"}))
      ->capture_default_str();
  verb.add_option("--kv", kv, "How the KV state is stored: dense, dense:bf16|f16|f32")->capture_default_str();
  verb.add_option("--kv-start", kv_start, "First position that --kv quantizes (needs a quantized --kv)")
      ->check(CLI::NonNegativeNumber);
  verb.add_option("--ctx", context_length, "Most tokens of a prompt and its answer")
      ->check(CLI::PositiveNumber);
  if (with_chat)
    verb.add_option("--chat-template", chat_template, "Use this Jinja file instead of the model's own");
}

models::ModelOptions ModelFlags::options(const CommandContext& context) const {
  models::ModelOptions options;
  options.kv = cache::parse_kv_policy(kv);
  if (kv_start)
    fail(ErrorCode::invalid_argument, "cli", "--kv-start {} needs a quantized --kv; {} is stored as it is",
         *kv_start, kv);
  if (math == "native")
    fail(ErrorCode::unsupported, "cli",
         "--math native: the native kernels are not in this build yet; use --math reference");
  options.context_length = context_length;
  if (!chat_template.empty()) options.chat_template = chat_template;
  const hub::ResolvedModel found = hub::resolve_model(model, context.environment);
  options.path = found.path;
  options.id = found.id;
  return options;
}

}  // namespace godwit::cli
