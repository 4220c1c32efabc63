#include "cli/verbs.h"

#include <vector>

namespace godwit::cli {

// Each verb is declared here and listed below, in the order of --help.
void add_generate(CLI::App& app, CommandContext& context);
void add_chat(CLI::App& app, CommandContext& context);
void add_eval(CLI::App& app, CommandContext& context);
void add_get(CLI::App& app, CommandContext& context);
void add_ls(CLI::App& app, CommandContext& context);
void add_scan(CLI::App& app, CommandContext& context);
void add_embed(CLI::App& app, CommandContext& context);
void add_bench(CLI::App& app, CommandContext& context);
void add_serve(CLI::App& app, CommandContext& context);

std::span<const AddVerb> verbs() {
  static const std::vector<AddVerb> table = {add_generate, add_chat, add_serve, add_get,
                                             add_ls,       add_scan, add_embed, add_eval, add_bench};
  return table;
}

}  // namespace godwit::cli
