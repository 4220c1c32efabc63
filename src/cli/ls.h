// `godwit ls`: the models on this machine that work as MODEL, and with -v what looks like one but cannot be
// opened.
#pragma once

#include "cli/command.h"

namespace godwit::cli {

void add_ls(CLI::App& app, CommandContext& context);

}  // namespace godwit::cli
