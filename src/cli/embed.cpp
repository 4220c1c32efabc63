// godwit embed: one vector for each text.
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/prompt.h"
#include "hub/model_resolver.h"
#include "models/embedding_model.h"

namespace godwit::cli {
namespace {

struct EmbedFlags {
  std::string model;
  std::vector<std::string> texts;
  std::string file;
  bool json = false;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) lines.push_back(std::move(line));
    begin = end + 1;
  }
  return lines;
}

std::vector<std::string> texts_of(const EmbedFlags& flags) {
  if (flags.file.empty()) return flags.texts;
  std::vector<std::string> lines = lines_of(read_text(flags.file));
  if (lines.empty()) fail(ErrorCode::invalid_argument, "embed", "{}: holds no text", flags.file);
  return lines;
}

std::string plain_line(const std::vector<float>& values) {
  std::string line;
  for (const float value : values) line += fmt::format("{}{}", line.empty() ? "" : " ", value);
  return line + "\n";
}

int run_embed(const EmbedFlags& flags, CommandContext& context) {
  const std::vector<std::string> texts = texts_of(flags);
  const hub::ResolvedModel found = hub::resolve_model(flags.model, context.environment);
  models::ModelOptions options;
  options.path = found.path;
  options.id = found.id;
  const auto model = models::EmbeddingModel::open(options, context.log);
  Json vectors = Json::array();
  int tokens = 0;
  for (const std::string& text : texts) {
    const auto embedding = model.embed(text);
    tokens += embedding.tokens;
    if (embedding.is_cut)
      context.log.warning("a text was cut to the {} tokens that the model reads", model.max_tokens());
    if (flags.json)
      vectors.push_back(embedding.values);
    else
      context.out.write(plain_line(embedding.values));
  }
  if (flags.json)
    context.out.print("{}\n", dump_json(Json{{"model", options.id},
                                             {"dimensions", model.dimensions()},
                                             {"tokens", tokens},
                                             {"embeddings", std::move(vectors)}}));
  return kExitDone;
}

}  // namespace

void add_embed(CLI::App& app, CommandContext& context) {
  auto flags = std::make_shared<EmbedFlags>();
  CLI::App* verb = app.add_subcommand("embed", "Turn texts into vectors, one line each");
  verb->add_option("-m,--model", flags->model, "Folder, .gguf file, hub id or name of a text encoder")->required();
  CLI::Option* text = verb->add_option("-p,--text", flags->texts, "A text; may be given several times");
  CLI::Option* file = verb->add_option("--file", flags->file, "A file of texts, one a line; - is standard input");
  text->excludes(file);
  verb->add_flag("--json", flags->json, "Print model, dimensions, tokens and embeddings as JSON");
  verb->callback([verb, flags, &context] {
    if (flags->texts.empty() && flags->file.empty()) throw CLI::RequiredError("-p or --file");
    context.action = [flags, &context] { return run_embed(*flags, context); };
  });
}

}  // namespace godwit::cli
