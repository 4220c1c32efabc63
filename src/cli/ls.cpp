#include "cli/ls.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "cli/model_summary.h"
#include "cli/progress_view.h"
#include "hub/hub_paths.h"
#include "hub/local_models.h"

namespace godwit::cli {
namespace {

struct LsFlags {
  std::string cache_dir;
  bool json = false, verbose = false;
};

using Row = std::array<std::string, 6>;

void print_table(const std::vector<Row>& rows, Output& out) {
  std::array<std::size_t, 6> width{};
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i + 1 < row.size(); ++i) line += fmt::format("{:<{}}  ", row[i], width[i]);
    out.print("{}{}\n", line, row.back());
  }
}

Row row_of(const ModelSummary& summary) {
  const auto or_dash = [](const std::string& text) { return text.empty() ? std::string("-") : text; };
  return {summary.model.id,
          format_bytes(summary.model.bytes),
          or_dash(summary.architecture),
          or_dash(summary.quantization),
          summary.context ? fmt::format("{}", *summary.context) : "-",
          summary.model.path.string()};
}

void print_people(const std::vector<ModelSummary>& models, const std::vector<hub::ModelProblem>& problems,
                  bool verbose, Output& out) {
  std::vector<Row> rows = {{"ID", "SIZE", "ARCHITECTURE", "QUANTIZATION", "CONTEXT", "PATH"}};
  std::size_t hidden = problems.size();
  for (const auto& model : models) {
    if (model.refused.empty())
      rows.push_back(row_of(model));
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
      out.print("refused: {} ({}): {}\n", model.model.id, model.model.path.string(), model.refused);
  for (const auto& problem : problems)
    out.print("broken: {} ({}): {}\n", problem.id, problem.path.string(), problem.what);
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
  std::vector<ModelSummary> models;
  for (const auto& model : listing.models) models.push_back(summarise(model));
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
  ls->add_flag("-v,--verbose", flags->verbose, "Also show what cannot be used, and why");
  ls->add_option("--cache-dir", flags->cache_dir, "List this hub cache instead of the default places");
  ls->callback([flags, &context] { context.action = [flags, &context] { return run_ls(*flags, context); }; });
}

}  // namespace godwit::cli
