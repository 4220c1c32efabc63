// `godwit get`: downloads a model from a Hugging Face style hub into the shared cache.
#pragma once

#include "cli/command.h"

namespace godwit::cli {

void add_get(CLI::App& app, CommandContext& context);

}  // namespace godwit::cli
