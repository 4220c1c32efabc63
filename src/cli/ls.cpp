#include "cli/ls.h"

#include <memory>
#include <string>
#include <vector>

#include "cli/model_summary.h"
#include "cli/profile_view.h"
#include "cli/progress_view.h"
#include "cli/table.h"
#include "hub/hub_paths.h"
#include "hub/local_models.h"

namespace godwit::cli {
namespace {

struct LsFlags {
  std::string cache_dir;
  bool json = false, verbose = false;
};

using Row = std::vector<std::string>;

void append(Row& row, const std::vector<std::string>& cells) {
  row.insert(row.end(), cells.begin(), cells.end());
}

Row row_of(const ModelSummary& summary, bool verbose) {
  const auto or_dash = [](const std::string& text) { return text.empty() ? std::string("-") : text; };
  Row row = {summary.model.id, format_bytes(summary.model.bytes), or_dash(summary.architecture),
             or_dash(summary.quantization), summary.context ? fmt::format("{}", *summary.context) : "-"};
  if (verbose && summary.profile) append(row, profile_cells(*summary.profile));
  row.push_back(summary.model.path.string());
  return row;
}

Row titles(bool verbose) {
  Row row = {"ID", "SIZE", "ARCHITECTURE", "QUANTIZATION", "CONTEXT"};
  if (verbose) append(row, profile_titles());
  row.push_back("PATH");
  return row;
}

void print_people(const std::vector<ModelSummary>& models, const std::vector<hub::ModelProblem>& problems,
                  bool verbose, Output& out) {
  std::vector<Row> rows = {titles(verbose)};
  std::size_t hidden = problems.size();
  for (const auto& model : models) {
    if (model.refused.empty())
      rows.push_back(row_of(model, verbose));
    else
      ++hidden;
  }
  if (rows.size() > 1) print_table(rows, out);
  if (rows.size() == 1) out.print("no models here yet; 'godwit get ORG/NAME' downloads one\n");
  if (!verbose) {
    if (hidden > 0) out.print("({} more cannot be used; 'godwit ls -v' says why)\n", hidden);
    return;
  }
  for (const auto& model : models)
    if (!model.refused.empty())
      out.print("refused: {} ({}): {}\n", printable(model.model.id), printable(model.model.path.string()),
                printable(model.refused));
  for (const auto& problem : problems)
    out.print("broken: {} ({}): {}\n", printable(problem.id), printable(problem.path.string()), printable(problem.what));
}

void print_json(const std::vector<ModelSummary>& models, const std::vector<hub::ModelProblem>& problems,
                Output& out) {
  Json list = Json::array(), faults = Json::array();
  for (const auto& model : models) list.push_back(json_of(model));
  for (const auto& problem : problems)
    faults.push_back({{"id", problem.id}, {"path", problem.path.string()}, {"problem", problem.what}});
  out.print("{}\n", dump_json({{"models", list}, {"problems", faults}}, 2));
}

int run_ls(const LsFlags& flags, CommandContext& context) {
  const auto listing = flags.cache_dir.empty() ? hub::list_local_models(context.environment)
                                               : hub::list_hub_cache(flags.cache_dir);
  const models::Catalogue catalogue = models::Catalogue::builtin();
  std::vector<ModelSummary> models;
  for (const auto& model : listing.models) models.push_back(summarise(model, catalogue));
  if (flags.json)
    print_json(models, listing.problems, context.out);
  else
    print_people(models, listing.problems, flags.verbose, context.out);
  return kExitDone;
}

}  // namespace

void add_ls(CLI::App& app, CommandContext& context) {
  const auto flags = std::make_shared<LsFlags>();
  auto* ls = app.add_subcommand("ls", "List the models on this machine");
  ls->add_flag("--json", flags->json, "Print the list as JSON");
  ls->add_flag("-v,--verbose", flags->verbose,
               "Also show how each would be opened, and what cannot be used and why");
  ls->add_option("--cache-dir", flags->cache_dir, "List this hub cache instead of the default places");
  ls->callback([flags, &context] { context.action = [flags, &context] { return run_ls(*flags, context); }; });
}

}  // namespace godwit::cli
